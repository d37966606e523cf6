"""What a keeper tells the worker process that it starts: one line, through their socket."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from pydantic import SecretStr

from forager.settings import Settings

MAX_LINE = 1024 * 1024
SECRETS = ("secret_key", "database_pool_url", "broker_url", "clickhouse_url", "opensearch_url")


@dataclass(frozen=True, slots=True)
class Instructions:
    """Who the worker is, where its database is, and how it is set up."""

    worker_id: UUID
    database_url: str
    settings: Settings

    def encode(self) -> bytes:
        settings = self.settings.model_dump(mode="json", exclude={"database_url", *SECRETS})
        line = {
            "worker_id": str(self.worker_id),
            "database_url": self.database_url,
            # dumped, they would be stars
            "secrets": {name: _told(getattr(self.settings, name)) for name in SECRETS},
            "settings": settings,
        }
        return orjson.dumps(line) + b"\n"


def receive_instructions(parent: socket.socket) -> Instructions | None:
    """Read the one line; None if the keeper died before it had said it."""
    line = b""
    while not line.endswith(b"\n") and len(line) < MAX_LINE:
        data = parent.recv(65536)
        if not data:
            return None
        line += data
    said: dict[str, Any] = orjson.loads(line)
    settings = Settings(**said["settings"], **said["secrets"])
    return Instructions(UUID(said["worker_id"]), said["database_url"], settings)


def _told(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()
