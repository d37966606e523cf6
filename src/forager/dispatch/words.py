"""What Celery and its libraries say, among our own lines: warnings, and none all the time."""

from __future__ import annotations

import logging
import time

from forager.logs import get_logger
from forager.tasks.causes import one_line

log = get_logger("dispatch")

SAID_EVERY = 60.0
LOGGERS = ("celery", "kombu", "amqp")


class InOurWords(logging.Handler):
    """Each line of their code speaks once per minute: at every attempt it would be too often."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._said: dict[tuple[str, int], float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        place = (record.pathname, record.lineno)
        now = time.monotonic()
        if now - self._said.get(place, -SAID_EVERY) >= SAID_EVERY:
            self._said[place] = now
            log.warning("celery", says=one_line(record.getMessage()))


def listen_to_celery() -> None:
    handler = InOurWords()
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
