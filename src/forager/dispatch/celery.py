"""For Celery's own command: `celery -A forager.dispatch.celery worker`, in any of its pools.

Each process of the pool runs its own stages, from its start to its end.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import suppress
from typing import Any

import uvloop
from celery import signals

from forager.clock import local_time
from forager.db.database import RUNNER_LIMITS, open_database
from forager.db.ids import new_id
from forager.db.outages import Outage
from forager.dispatch.application import Inbox, listen_to_celery, make_app
from forager.errors import error_text
from forager.logs import configure_logs, get_logger
from forager.metrics.recorder import recording
from forager.settings import Settings, load_settings
from forager.tasks.hints import Hints, HintsClosed
from forager.tasks.workers.process import CONNECTIONS
from forager.tasks.workers.worker import TaskWorker

log = get_logger("dispatch")

POLL_INTERVAL = 1.0
# a database may have to be migrated or started first
START_LIMIT = 60.0


class StageThread:
    """The stages of a pool process, started on first use: never in a process that will fork."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._inbox: Future[Inbox] = Future()
        self._worker: TaskWorker | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deadline = float("inf")
        self._stopping = False

    def inbox(self) -> Inbox:
        """Wait for the database; raises HintsClosed if that takes too long."""
        self.start()
        try:
            return self._inbox.result(START_LIMIT)
        except TookTooLong:
            raise HintsClosed from None

    def start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stages", daemon=True)
                self._thread.start()
                threading.Thread(target=self._watch, name="lease deadline", daemon=True).start()

    def stop(self) -> None:
        thread, loop, worker = self._thread, self._loop, self._worker
        self._stopping = True
        if thread is None:
            return
        if loop is not None and worker is not None:
            with suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(worker.stop)
        thread.join(self._settings.shutdown_grace)

    def _run(self) -> None:
        outage = Outage(log, "the database is unreachable, will retry")
        try:
            while not (self._inbox.done() or self._stopping):
                with outage:
                    uvloop.run(self._work())
                if outage.lasts:
                    time.sleep(POLL_INTERVAL)
        except Exception as error:
            log.error("the stages of this worker have failed", error=error_text(error))
        self._deadline = float("inf")
        if not self._stopping:
            os._exit(1)  # the parent process starts another

    async def _work(self) -> None:
        settings, worker_id = self._settings, new_id()
        async with (
            open_database(
                settings,
                name=f"forager tasks {worker_id}",
                limits=RUNNER_LIMITS,
                max_size=CONNECTIONS,
                linger=False,
            ) as database,
            recording(database, settings),
        ):
            hints = Hints()
            self._renewed(local_time())
            self._worker = TaskWorker(
                database, settings, worker_id, on_renewed=self._renewed, hints=hints
            )
            self._loop = asyncio.get_running_loop()
            self._inbox.set_result(Inbox(self._loop, hints))
            await self._worker.run()

    def _renewed(self, at: float) -> None:
        self._deadline = at + self._settings.lease_limit

    def _watch(self) -> None:
        """End a worker whose row is not renewed, before its tasks are recovered."""
        while local_time() < self._deadline:
            time.sleep(POLL_INTERVAL)
        log.error("the row of this worker was not renewed in time, and it ends")
        os._exit(1)


settings = load_settings(dispatch="celery")
stage = StageThread(settings)
app = make_app(settings, stage.inbox)


def _set_up_logs(**_: Any) -> None:
    configure_logs(settings.log_level, settings.log_format)
    listen_to_celery()


def _begin(**_: Any) -> None:
    stage.start()


def _end(**_: Any) -> None:
    stage.stop()


signals.setup_logging.connect(_set_up_logs, weak=False)
signals.worker_process_init.connect(_begin, weak=False)
signals.worker_process_shutdown.connect(_end, weak=False)
signals.worker_shutdown.connect(_end, weak=False)
