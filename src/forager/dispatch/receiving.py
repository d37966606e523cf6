"""Receiving hints: a Celery worker in a thread beside the stages of a worker for tasks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from celery import Celery
from celery.worker import WorkController, state

from forager.dispatch.application import Inbox, listen_to_celery, make_app
from forager.logs import get_logger
from forager.settings import Settings
from forager.tasks.hints import Hints

log = get_logger("dispatch")

# its loop turns once per second, and what it is in the middle of ends when the hints are closed
STOP_LIMIT = 10.0


@asynccontextmanager
async def receiving(settings: Settings, hints: Hints) -> AsyncIterator[None]:
    """Consume for as long as the block runs. Hints must have been closed when it ends."""
    inbox = Inbox(asyncio.get_running_loop(), hints)
    listen_to_celery()
    thread = CeleryThread(make_app(settings, lambda: inbox))
    thread.start()
    try:
        yield
    finally:
        await asyncio.to_thread(thread.stop)


class CeleryThread:
    """One claim at a time: the pool is the thread itself, and acknowledges without delay."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._thread = threading.Thread(target=self._run, name="celery", daemon=True)
        self._stopping = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        state.should_stop = os.EX_OK
        self._thread.join(STOP_LIMIT)
        if self._thread.is_alive():
            log.warning("the consumer of the broker does not stop, and is left behind")

    def _run(self) -> None:
        try:
            WorkController(app=self._app, pool="solo", concurrency=1).start()
        except Exception as error:
            log.error("the consumer of the broker has failed", error=repr(error))
        if not self._stopping:
            # without it there is nothing to do: the supervisor starts another process
            with contextlib.suppress(ProcessLookupError):
                os.kill(os.getpid(), signal.SIGTERM)
