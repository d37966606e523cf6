"""ClickHouse: its engine from PyPI (chdb), behind a door that speaks its HTTP interface."""

from __future__ import annotations

import sys
from base64 import b64encode
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from services.servers.server import NotStartedError, Server

FRONT = Path(__file__).with_name("clickhouse_front.py")


class ClickHouseServer(Server):
    """One user, and a database for each test that needs one."""

    name = "clickhouse"
    user = "forager"
    password = "only on/loopback"

    def url(self, database: str, password: str | None = None) -> str:
        login = f"{self.user}:{quote(password or self.password, safe='')}"
        return f"clickhouse://{login}@127.0.0.1:{self.port}/{database}"

    def variables(self) -> dict[str, str]:
        return {"FORAGER_CLICKHOUSE_URL": self.url("default")}

    @classmethod
    def obtain(cls) -> None:
        for module in ("chdb", "clickhouse_connect"):
            if find_spec(module) is None:
                raise NotStartedError(f"{module} is not installed; `make services` does it")

    def configure(self) -> None:
        (self.folder / "data").mkdir(exist_ok=True)

    def command(self) -> list[str]:
        login = f"{self.user}:{self.password}"
        return [sys.executable, str(FRONT), str(self.folder / "data"), str(self.port), login]

    def is_ready(self) -> bool:
        return self._ask("GET", "/ping")[0] == 200

    def run(self, statement: str, database: str = "default") -> str:
        """What the server answers, as tab-separated text."""
        status, text = self._ask("POST", f"/?database={database}", statement.encode())
        assert status == 200, text
        return text

    def _ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, str]:
        line = HTTPConnection("127.0.0.1", self.port, timeout=60)
        login = b64encode(f"{self.user}:{self.password}".encode()).decode()
        try:
            line.request(method, path, body, {"Authorization": f"Basic {login}"})
            reply = line.getresponse()
            return reply.status, reply.read().decode()
        finally:
            line.close()
