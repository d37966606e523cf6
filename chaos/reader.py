"""Readers: they walk through what is published while it changes, and must never see a mixture."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from chaos.chance import seeded
from chaos.store import looks
from chaos.user import ApiAway, User
from chaos.violation import Promise, Violations
from forager.db.database import Database
from forager.errors import DatabaseUnavailable

LIMIT = 60
PAUSE = 0.2


class Reader:
    """Reads whole lists of pages, part after part."""

    def __init__(self, user: User, database: Database, violations: Violations, seed: int) -> None:
        self.lists = 0
        self._user = user
        self._database = database
        self._violations = violations
        self._chance = seeded(seed, "reader")

    async def keep_reading(self) -> None:
        while True:
            source = self._chance.choice(self._user.site.docs).name
            with suppress(ApiAway, DatabaseUnavailable):
                await self.read(source)
            await asyncio.sleep(PAUSE)

    async def read(self, source: str) -> None:
        """All parts of one list must be one generation that was published at some time."""
        found = await self._list(source)
        if not found:
            return
        async with self._database.connection() as connection:
            shown = await looks.select_manifests(connection, source)
        if sorted(found) not in shown:
            words = f"a list of {source} had {len(found)} pages that were never published together"
            self._violations.add(Promise.ONE_GENERATION, words)
        self.lists += 1

    async def _list(self, source: str) -> list[int] | None:
        """The documents of a list; None if there is none, or it expired on the way."""
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
