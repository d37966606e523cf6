"""A task worker's lifeline: a thread that ends the process in time.

It is a thread, because the event loop may be the very thing that hangs: a worker whose row nobody
renews must be gone before its tasks are given to somebody else.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable

from forager.clock import local_time
from forager.jobs.guardian import end_process_group

NAP = 1.0
TICK = b"."
# a machine that slept, or a database that was away: not the fault of the tasks
LAST_WORD = b"!"
# how long a worker goes on whose parent has died
ORPHAN_LIMIT = 15.0


class Lifeline:
    """`on_orphaned` is called, from the thread, when whoever started this process is gone."""

    def __init__(
        self, parent: socket.socket, *, lease_limit: float, on_orphaned: Callable[[], None]
    ) -> None:
        self._parent = parent
        self._lease_limit = lease_limit
        self._on_orphaned = on_orphaned
        self._deadline = local_time() + lease_limit
        self._latest = float("inf")

    def start(self) -> None:
        threading.Thread(target=self._watch, name="lifeline", daemon=True).start()

    def renewed(self, at: float) -> None:
        """The worker's row was renewed; `at` is the local time before the database was asked."""
        self._deadline = at + self._lease_limit

    def tick(self) -> None:
        """Say that the event loop turns; only to be called from there."""
        self._send(TICK)

    def _send(self, word: bytes) -> None:
        # a full socket means that nobody reads: nothing said here is worth waiting for
        with contextlib.suppress(OSError):
            self._parent.send(word, socket.MSG_DONTWAIT)

    def _watch(self) -> None:
        connected = True
        while True:
            remaining = min(self._deadline, self._latest) - local_time()
            if remaining <= 0:
                self._send(LAST_WORD)
                end_process_group()
            # short naps: the select timer stands still while the machine sleeps
            readers = [self._parent] if connected else []
            ready, _, _ = select.select(readers, [], [], min(remaining, NAP))
            if ready and not self._read():
                connected = False
                self._latest = local_time() + ORPHAN_LIMIT
                self._on_orphaned()

    def _read(self) -> bool:
        try:
            return bool(self._parent.recv(4096))
        except OSError:
            return False
