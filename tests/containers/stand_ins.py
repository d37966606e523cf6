"""The images of compose.yaml, built from Debian packages and the servers of tests/services."""

from __future__ import annotations

from pathlib import Path

import yaml

from containers.engine import IMAGES, build, debian
from services.servers import clickhouse, minio, opensearch

ROOT = Path(__file__).parents[2]
PYTHON = "docker.io/library/python:3.14-slim-trixie"


def build_all() -> None:
    """Build every image of the compose file, in the order of their dependencies."""
    for suite in ("trixie", "forky"):
        debian(suite)
    build(PYTHON, IMAGES / "python")
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    for image in {service["image"] for service in services.values() if "build" not in service}:
        name = image.split(":")[0].split("/")[-1].removesuffix("-server")
        registry = "docker.io" if "/" in image else "docker.io/library"
        build(f"{registry}/{image}", IMAGES / name, files=_programs(name))
    build("localhost/forager-pgbouncer:local", ROOT / "deploy/pgbouncer")


def _programs(image: str) -> dict[str, Path]:
    match image:
        case "minio":
            minio.MinIO.obtain()
            return {"minio": minio.PROGRAM}
        case "opensearch":
            opensearch.OpenSearch.obtain()
            return {"node": opensearch.OpenSearch.program_folder()}
        case "clickhouse":
            return {"clickhouse_front.py": clickhouse.FRONT}
    return {}


if __name__ == "__main__":
    build_all()
