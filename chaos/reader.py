"""Readers page through published documents while they change, and must never see a mixture."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from chaos.randomness import generator_for
from chaos.store import checks
from chaos.user import ApiUnavailable, User
from chaos.violation import Promise, Violations
from forager.db.database import Database
from forager.errors import DatabaseUnavailable, DiskFull

LIMIT = 60
PAUSE = 0.2


class Reader:
    """Reads complete lists of pages with cursors."""

    def __init__(self, user: User, database: Database, violations: Violations, seed: int) -> None:
        self.lists = 0
        self._user = user
        self._database = database
        self._violations = violations
        self._chance = generator_for(seed, "reader")

    async def keep_reading(self) -> None:
        while True:
            source = self._chance.choice(self._user.site.docs).name
            with suppress(ApiUnavailable, DatabaseUnavailable, DiskFull):
                await self.read(source)
            await asyncio.sleep(PAUSE)

    async def read(self, source: str) -> None:
        """Check that all parts of a list belong to one published generation."""
        found = await self._list(source)
        if not found:
            return
        async with self._database.connection() as connection:
            shown = await checks.select_manifests(connection, source)
        if sorted(found) not in shown:
            message = (
                f"a list of {source} had {len(found)} pages that were never published together"
            )
            self._violations.add(Promise.ONE_GENERATION, message)
        self.lists += 1

    async def _list(self, source: str) -> list[int] | None:
        """The documents of a list; None if it does not exist or expired meanwhile."""
        found: list[int] = []
        cursor: str | None = None
        while True:
            more = f"&cursor={quote(cursor)}" if cursor else ""
            part: Any = await self._user.ask(
                "GET", f"/documents?source={source}&limit={LIMIT}{more}"
            )
            if part is None:
                return None
            found += [document["id"] for document in part["items"]]
            cursor = part["next_cursor"]
            if cursor is None:
                return found
