"""Messages of the server library and the event loop, in our log and not more often than useful."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from forager.logs import get_logger

log = get_logger("api")

EVERY = 30.0
MAX_KEYS = 1000
SOURCES = ("uvicorn.error", "asyncio")


class Throttle:
    """Lets the first message of a kind pass, and then one in each interval."""

    def __init__(self, every: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._clock = clock
        self._last: dict[str, tuple[float, int]] = {}

    def passes(self, key: str) -> int | None:
        """How many were held back since the last one, or None to hold back this one as well."""
        now = self._clock()
        at, held_back = self._last.get(key, (None, 0))
        if at is not None and now - at < self._every:
            self._last[key] = (at, held_back + 1)
            return None
        if len(self._last) >= MAX_KEYS:
            self._last.clear()
        self._last[key] = (now, 0)
        return held_back


class _ServerLog(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._throttle = Throttle()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        # the first line names the failure; what follows names the socket
        repeated = self._throttle.passes(message.partition("\n")[0])
        if repeated is None:
            return
        # errors of requests are logged with their traceback by RequestIds
        trace = record.exc_info if record.name == "asyncio" else None
        more = {"repeated": repeated} if repeated else {}
        log.log(record.levelno, message, exc_info=trace, **more)


@contextmanager
def server_log() -> Iterator[None]:
    """Send the messages of the server to our log while it runs."""
    handler = _ServerLog()
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
