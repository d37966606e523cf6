"""The socket between a runner and its browser process: frames in both directions."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any, Self

from forager.processes.serving import PREFIX, decode_frame, encode_frame, frame_lengths

Message = tuple[dict[str, Any], list[bytes]]


class BrowserLink:
    """The connection between a runner and its browser process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, sock: socket.socket) -> Self:
        return cls(*await asyncio.open_unix_connection(sock=sock, limit=2**20))

    def send(self, header: dict[str, Any], blobs: Sequence[bytes] = ()) -> None:
        """Send a message; the death of the other side is noticed by reading."""
        if not self._writer.transport.is_closing():
            self._writer.write(encode_frame(header, blobs))

    async def receive(self) -> Message | None:
        """The next message; None at the end of the stream. ValueError for anything else."""
        try:
            head, body = frame_lengths(await self._reader.readexactly(PREFIX))
            return decode_frame(
                await self._reader.readexactly(head), await self._reader.readexactly(body)
            )
        except (asyncio.IncompleteReadError, OSError):
            return None

    def close(self) -> None:
        self._writer.transport.abort()
