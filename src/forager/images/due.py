"""The images that are due, found behind those of other regions."""

from __future__ import annotations

from forager.clock import local_time
from forager.db.database import Connection
from forager.images.store import images as store
from forager.images.store.images import START, PendingImage
from forager.settings import Settings

# a worker that has gone to the end looks again at what it passed over after so many seconds
AGAIN_AFTER = 60.0


class DueImages:
    """Claims for one worker. What waits for others is passed over step by step, and not each time.

    So a region without a worker, for which any number may wait, makes no statement long.
    """

    def __init__(self, settings: Settings, *, lease: float, step: int = 2_000) -> None:
        self._settings = settings
        self._lease = lease
        self._step = step
        self._after = START
        self._began = local_time()

    async def claim(self, connection: Connection, limit: int) -> list[PendingImage]:
        """The next that are due, if any is."""
        self._begin_again()
        while True:
            until = await store.select_place(connection, after=self._after, count=self._step)
            claimed = await store.claim_images(
                connection,
                limit=limit,
                lease_seconds=self._lease,
                region=self._settings.region,
                task_proxies=self._settings.task_proxies,
                after=self._after,
                until=until,
            )
            if len(claimed) < limit and until is not None:
                self._after = until
            if claimed or until is None:
                return claimed

    def _begin_again(self) -> None:
        if self._after is START or local_time() - self._began > AGAIN_AFTER:
            self._after, self._began = START, local_time()
