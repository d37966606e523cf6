"""Limits on connections: how many may be open, and how long each may keep the server waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from forager.logs import Throttle, ThrottledHandler, get_logger
from forager.processes.files import raise_file_limit
from forager.settings import Settings

SOURCES = ("uvicorn.error", "asyncio")


def _log(record: logging.LogRecord, repeated: int) -> None:
    # errors of requests are logged with their traceback by Observation
    trace = record.exc_info if record.name == "asyncio" else None
    more = {"repeated": repeated} if repeated else {}
    log.log(record.levelno, record.getMessage(), exc_info=trace, **more)


@contextmanager
def server_log() -> Iterator[None]:
    """Send the messages of the server to our log while it runs."""
    # the first line names the failure; what follows names the socket
    handler = ThrottledHandler(_log, kind=lambda record: record.getMessage().partition("\n")[0])
    loggers = [logging.getLogger(name) for name in SOURCES]
    before = [(each.handlers, each.propagate, each.level) for each in loggers]
    for each in loggers:
        each.handlers, each.propagate = [handler], False
        each.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for each, (handlers, propagate, level) in zip(loggers, before, strict=True):
            each.handlers, each.propagate = handlers, propagate
            each.setLevel(level)


log = get_logger("api")

# for the database, log, archive and jobs of the same process
RESERVED_FILES = 128


# seconds a client may take to send the head of a request, and a small body
HEAD_SECONDS = 10.0
BODY_SECONDS = 60.0
# without reading anything of an answer: an export may be piped into something slow
STALLED_SECONDS = 300.0


@dataclass(slots=True)
class ConnectionLimits:
    """The open connections of one server. At the limit, the longest waiting one is closed."""

    max_open: int
    # seconds that a client may take for each part of an exchange
    head: float
    body: float
    stalled: float
    _open: set[LimitedConnection] = field(default_factory=set)
    # those that have not sent the head of a request, oldest first
    _waiting: dict[LimitedConnection, None] = field(default_factory=dict)
    _warnings: Throttle = field(default_factory=Throttle)

    def admit(self, connection: LimitedConnection) -> bool:
        if len(self._open) >= self.max_open and not self._close_longest_waiting():
            return False
        self._open.add(connection)
        return True

    def release(self, connection: LimitedConnection) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def mark(self, connection: LimitedConnection, *, waiting: bool) -> None:
        if not waiting:
            self._waiting.pop(connection, None)
        elif connection in self._open:
            self._waiting[connection] = None

    def _close_longest_waiting(self) -> bool:
        if (repeated := self._warnings.passes("full")) is not None:
            log.warning("too many connections", limit=self.max_open, repeated=repeated)
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            return False
        self.release(oldest)
        oldest.transport.abort()
        return True


class LimitedConnection(H11Protocol):
    """A connection that is closed when a part of the exchange takes too long."""

    def __init__(self, limits: ConnectionLimits, **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self._limits = limits
        self._receiving: object = None
        self._receive_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._limits.admit(self):
            self._follow_request()
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._follow_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._follow_request()
        if self.transport.is_closing():  # the rest of the answer may never be read
            _cancel(self._send_timer)
            self._send_timer = self._abort_after(self._limits.stalled)

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.release(self)
        _cancel(self._receive_timer)
        _cancel(self._send_timer)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._send_timer = self._abort_after(self._limits.stalled)

    def resume_writing(self) -> None:
        _cancel(self._send_timer)
        super().resume_writing()

    def _follow_request(self) -> None:
        """Set the deadline for the part that the client sends now, once for each part."""
        state: object = self.conn.their_state
        if state is self._receiving:
            return
        self._receiving = state
        self._limits.mark(self, waiting=state is h11.IDLE)
        _cancel(self._receive_timer)
        if state is h11.IDLE:
            self._receive_timer = self._abort_after(self._limits.head)
        elif state is h11.SEND_BODY:
            self._receive_timer = self._abort_after(self._limits.body)

    def _abort_after(self, seconds: float) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def limits_of(settings: Settings) -> ConnectionLimits:
    """As many connections as the settings and the open files of this process allow."""
    room = max(1, raise_file_limit() - RESERVED_FILES)
    # a large body may be sent at 1 MB/s
    body = BODY_SECONDS + settings.api_max_body_mb
    max_open = min(settings.api_max_connections, room)
    return ConnectionLimits(max_open, HEAD_SECONDS, body, STALLED_SECONDS)
