"""MinIO, built from its source with Go: S3-compatible object storage."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
from http.client import HTTPConnection
from pathlib import Path

from services.servers.obtaining import BUILT, build_once, need_program, run
from services.servers.server import Server

# the last published source: it has no later release
VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
PROGRAM = BUILT / f"minio-{VERSION}" / "minio"
REGION = "us-east-1"
EMPTY = hashlib.sha256(b"").hexdigest()


class MinIO(Server):
    """An S3 at `endpoint`, path style, one access key."""

    name = "minio"
    access_key = "forager"
    secret_key = "only-on-loopback"
    region = REGION

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def variables(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": REGION,
        }

    @classmethod
    def obtain(cls) -> None:
        build_once(PROGRAM.parent, _build)

    def configure(self) -> None:
        (self.folder / "data").mkdir(exist_ok=True)

    def command(self) -> list[str]:
        address = f"127.0.0.1:{self.port}"
        return [
            str(PROGRAM), "server", "--quiet", "--anonymous", "--address", address,
            str(self.folder / "data"),
        ]  # fmt: skip

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "MINIO_ROOT_USER": self.access_key,
            "MINIO_ROOT_PASSWORD": self.secret_key,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
            "MINIO_CI_CD": "1",  # no quarrel about data on the system's own disk
        }

    def is_ready(self) -> bool:
        return self._ask("GET", "/minio/health/ready", {}) == 200

    def make_bucket(self, name: str) -> None:
        """Make it unless it is there."""
        status = self._ask("PUT", f"/{name}", self._signature("PUT", f"/{name}"))
        assert status in (200, 409), status

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> int:
        line = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            line.request(method, path, headers=headers)
            return line.getresponse().status
        finally:
            line.close()

    def _signature(self, method: str, path: str) -> dict[str, str]:
        """AWS signature, version 4, of a request without a body."""
        now = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        host = f"127.0.0.1:{self.port}"
        names = "host;x-amz-content-sha256;x-amz-date"
        request = "\n".join(
            (method, path, "", f"host:{host}", f"x-amz-content-sha256:{EMPTY}",
             f"x-amz-date:{now}", "", names, EMPTY)
        )  # fmt: skip
        hashed = hashlib.sha256(request.encode()).hexdigest()
        key = f"AWS4{self.secret_key}".encode()
        for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashed}"):
            key = hmac.digest(key, part.encode(), "sha256")
        credential = f"{self.access_key}/{scope}"
        return {
            "x-amz-date": now,
            "x-amz-content-sha256": EMPTY,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={credential}, "
            f"SignedHeaders={names}, Signature={key.hex()}",
        }


def _build(folder: Path) -> None:
    go = need_program("go", "the Go tools")
    run([go, "install", f"github.com/minio/minio@{VERSION}"], {"GOBIN": str(folder)})
