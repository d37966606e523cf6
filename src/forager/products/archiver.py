"""Archiving of products: those not seen for long move from the database to files."""

from __future__ import annotations

import random
from functools import partial

from forager.db.database import Database
from forager.logs import get_logger
from forager.products.archiving import BATCH, archive_folder, archive_range, prepare_archiving
from forager.products.store import archiving as store
from forager.services.service import Service
from forager.settings import Settings

log = get_logger("products")

INTERVAL = 6 * 3600.0
# bounds the wait for the first run, so that workers restarted every day archive as well
FIRST = 900.0
# products that are looked at in one statement, and how many of those statements make one look:
# the time of the last visit is in no index, which every visit would pay for
RANGE = 20_000
RANGES = 200


class ProductArchiver:
    """Looks at some products each time, and goes on behind them the next time.

    Nobody knows where it was before a restart: it begins anywhere, so that all have their turn.
    """

    def __init__(
        self, database: Database, settings: Settings, *, ids: int = RANGE, ranges: int = RANGES
    ) -> None:
        self._database = database
        self._settings = settings
        self._ids = ids
        self._ranges = ranges
        self._after: int | None = None
        self._is_prepared = False

    def services(self) -> list[Service]:
        """Its service, unless archiving is switched off."""
        if self._settings.product_archive_after is None:
            return []
        return [
            Service(
                name="product archiving", every=INTERVAL, step=self.run_once, first_within=FIRST
            )
        ]

    async def run_once(self) -> int:
        """Archive what is due among the next products; how many they were."""
        archived = 0
        self._is_prepared = False
        start = after = await self._anywhere() if self._after is None else self._after
        is_round = False
        for _ in range(self._ranges):
            async with self._database.connection() as connection:
                last = await store.select_last_id(connection, after=after, limit=self._ids)
            if is_round and (last is None or after >= start):
                break
            if last is None:
                is_round, after = True, 0
                continue
            archived += await self._archive(after, last)
            after = self._after = last
        self._after = after
        if archived:
            folder = archive_folder(self._settings)
            log.info(
                "products not seen for long were archived", products=archived, folder=str(folder)
            )
        return archived

    async def _anywhere(self) -> int:
        async with self._database.connection() as connection:
            ids = await store.select_ids(connection)
        return 0 if ids is None else random.randrange(ids[0] - 1, ids[1])  # noqa: S311

    async def _archive(self, after: int, last: int) -> int:
        assert self._settings.product_archive_after is not None
        lock = partial(
            store.lock_given_up,
            seconds=self._settings.product_archive_after, limit=BATCH, until=last,
        )  # fmt: skip
        async with self._database.transaction() as connection:
            if not await lock(connection, after=after):
                return 0
        if not self._is_prepared:
            await prepare_archiving(self._database, self._settings)
            self._is_prepared = True
        moved = await archive_range(self._database, self._settings, lock, after=after)
        return moved.products
