"""Requests per minute: one bucket for each owner, shared by all processes.

The bucket is in the database, and a process takes about a second's worth from it at a time. So the
limit holds for all processes together, and a busy owner costs each of them one statement a second.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from uuid import UUID

from forager.access import store
from forager.access.caller import Caller, QuotaExceeded
from forager.db.database import Database

MINUTE = 60.0
# permits that a process does not use within this time expire, so that they cannot be saved up
KEPT_FOR = 10.0
# an owner without requests left is not looked up again for this long
MIN_WAIT = 0.1
# beyond this number, owners without recent requests are dropped
MAX_OWNERS = 10_000


@dataclass(slots=True)
class _Share:
    """What this process holds of an owner's permits."""

    per_minute: int
    left: int = 0
    taken_at: float = 0.0
    # none are left in the database until then
    empty_until: float = 0.0
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def use(self, now: float) -> bool:
        if self.left < 1 or now > self.taken_at + KEPT_FOR:
            return False
        self.left -= 1
        return True


class Permits:
    """The requests that owners may make per minute, in all processes together."""

    def __init__(self, database: Database, per_minute: int | None) -> None:
        self._database = database
        self._per_minute = per_minute
        self._shares: dict[UUID, _Share] = {}

    async def take(self, caller: Caller) -> None:
        """Count one request; raises when its owner has none left."""
        limit = caller.quota.requests_per_minute or self._per_minute
        if limit is None or caller.user_id is None:
            return
        share = self._share(caller.user_id, limit)
        if share.use(time.monotonic()):
            return
        # one at a time: waiting requests use what the first one fetched
        async with share.taking:
            now = time.monotonic()
            if share.use(now):
                return
            if now >= share.empty_until:
                await self._fill(caller.user_id, share, now)
            if not share.use(now):
                raise _too_many(limit, share.empty_until - now)

    def _share(self, user_id: UUID, limit: int) -> _Share:
        share = self._shares.get(user_id)
        if share is None or share.per_minute != limit:
            self._forget_some()
            share = self._shares[user_id] = _Share(limit)
        return share

    def _forget_some(self) -> None:
        if len(self._shares) >= MAX_OWNERS:
            oldest = time.monotonic() - MINUTE
            self._shares = {u: s for u, s in self._shares.items() if s.taken_at > oldest}

    async def _fill(self, user_id: UUID, share: _Share, now: float) -> None:
        """Take a second's worth, or what is left of it."""
        each = MINUTE / share.per_minute
        wanted = max(1, share.per_minute // 60)
        async with self._database.connection() as connection:
            if not await store.take_permits(connection, user_id, seconds=wanted * each):
                room = MINUTE - await store.select_seconds_taken(connection, user_id)
                wanted = min(wanted, int(room / each))
                share.empty_until = now + max(MIN_WAIT, each - room)
                if wanted < 1 or not await store.take_permits(
                    connection, user_id, seconds=wanted * each
                ):
                    return
        share.left, share.taken_at = wanted, now


def _too_many(limit: int, wait: float) -> QuotaExceeded:
    return QuotaExceeded(
        f"more than {limit} requests in a minute",
        what="requests_per_minute",
        used=limit,
        limit=limit,
        retry_after=wait,
        hint="Wait for the time in Retry-After.",
    )
