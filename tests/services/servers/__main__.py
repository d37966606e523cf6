"""`scripts/services`: start, stop and show the servers, which run until they are stopped."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from services.servers.clickhouse import ClickHouseServer
from services.servers.minio import MinIO
from services.servers.opensearch import Elasticsearch, OpenSearch
from services.servers.pgbouncer import PgBouncer
from services.servers.rabbitmq import RabbitMQ
from services.servers.server import NotStartedError, Server, free_port, locked

KINDS: dict[str, Callable[[Path, int], Server]] = {
    RabbitMQ.name: RabbitMQ,
    MinIO.name: MinIO,
    ClickHouseServer.name: ClickHouseServer,
    OpenSearch.name: OpenSearch,
    Elasticsearch.name: Elasticsearch,
    PgBouncer.name: lambda folder, port: PgBouncer(folder, _database(), port=port),
}
RUN = Path(__file__).parents[3] / "build" / "services"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/services", description=__doc__)
    parser.add_argument("action", choices=("start", "stop", "status", "build"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(KINDS)}")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(KINDS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    act = {"start": _start, "stop": _stop, "status": _status, "build": _build}[arguments.action]
    try:
        for name in arguments.names or KINDS:
            with locked(RUN / f"{name}.lock"):
                act(_server(name))
    except NotStartedError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _database() -> str:
    """What PgBouncer stands in front of."""
    return os.environ.get("FORAGER_DATABASE_URL", "postgresql://postgres@127.0.0.1/postgres")


def _server(name: str) -> Server:
    """The server of this name, at the port where it was first started."""
    folder = RUN / name
    remembered = folder / "port.json"
    if remembered.exists():
        return KINDS[name](folder, json.loads(remembered.read_text()))
    server = KINDS[name](folder, free_port())
    folder.mkdir(parents=True, exist_ok=True)
    remembered.write_text(json.dumps(server.port))
    return server


def _start(server: Server) -> None:
    if server.guard_process() is None:
        print(f"{server.name} ...", file=sys.stderr)
        server.start(detached=True)
    for name, value in server.variables().items():
        print(f"export {name}={value}")


def _stop(server: Server) -> None:
    server.stop()


def _status(server: Server) -> None:
    process = server.guard_process()
    print(f"{server.name}: {'not running' if process is None else f'running, port {server.port}'}")


def _build(server: Server) -> None:
    server.obtain()


if __name__ == "__main__":
    sys.exit(main())
