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


@dataclass(frozen=True, slots=True)
class Instructions:
    """Who the worker is, where its database is, and how it is set up."""

    worker_id: UUID
    database_url: str
    settings: Settings

    def encode(self) -> bytes:
        settings = self.settings.model_dump(mode="json", exclude={"database_url", "secret_key"})
        key = self.settings.secret_key
        line = {
            "worker_id": str(self.worker_id),
            "database_url": self.database_url,
            # dumped, it would be stars
            "secret_key": None if key is None else key.get_secret_value(),
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
    key = said["secret_key"]
    settings = Settings(**said["settings"], secret_key=None if key is None else SecretStr(key))
    return Instructions(UUID(said["worker_id"]), said["database_url"], settings)
