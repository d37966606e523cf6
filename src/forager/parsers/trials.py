"""Trials of canaries: a canary that breaks its limits too often in a row is ended.

A page that hangs costs its time limit and the process that parses it. The active version must not
wait for that on page after page, so the trial is ended with an event.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from forager.db.database import Database
from forager.db.outages import TRANSIENT_ERRORS
from forager.errors import error_text
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.logs import get_logger
from forager.parsers.page_cache import CachedPage
from forager.parsers.reading import Parsed, ReadingPool, tried_versions
from forager.parsers.rollouts import RolloutPlan, end_trial

log = get_logger("parsers")

# exceeding a limit this often in a row ends the trial
MOST_BREAKS = 3
# canary readings in progress per process
PER_PROCESS = 2

# parser, version, and the time of the decision: a repeated decision is a new trial
Trial = tuple[str, str, datetime | None]


class Trials:
    """Reads pages with the canary version as well, and logs the differences."""

    def __init__(self, database: Database, pool: ReadingPool) -> None:
        self._database = database
        self._pool = pool
        self._turns = asyncio.Semaphore(PER_PROCESS * pool.processes)
        self._breaks: Counter[Trial] = Counter()

    async def read(
        self,
        page: CachedPage,
        plan: RolloutPlan,
        active: Mapping[str, str],
        canary: Mapping[str, str],
        *,
        to_blame: bool = True,
    ) -> Parsed | None:
        """The canary's reading of a page; None if no canary applies to it.

        A canary is not `to_blame` for a page that breaks the active version as well.
        """
        versions = tried_versions(page.url, active, self._going_on(plan, canary))
        if versions is None:
            return None
        async with self._turns:
            # another page may have ended it meanwhile
            if tried_versions(page.url, active, self._going_on(plan, canary)) is None:
                return None
            parsed = await self._pool.parse(page, versions)
        if to_blame:
            await self._evaluate(_trial(plan, parsed.parser, parsed.version), parsed)
        return parsed

    def _going_on(self, plan: RolloutPlan, canary: Mapping[str, str]) -> dict[str, str]:
        return {
            parser: version
            for parser, version in canary.items()
            if self._breaks[_trial(plan, parser, version)] < MOST_BREAKS
        }

    async def _evaluate(self, trial: Trial, parsed: Parsed) -> None:
        if not parsed.broke:
            if self._breaks[trial] < MOST_BREAKS:
                del self._breaks[trial]
            return
        self._breaks[trial] += 1
        if self._breaks[trial] >= MOST_BREAKS:
            await self._end(trial, parsed.error or "")

    async def _end(self, trial: Trial, reason: str) -> None:
        parser, version, _ = trial
        log.warning("trial of a parser ended", parser=parser, version=version, reason=reason)
        try:
            await suspend(self._database, parser, version, reason)
        except TRANSIENT_ERRORS as error:
            # this worker stops the trial in any case; others will notice the limit themselves
            log.warning("the end of a trial was not noted", parser=parser, reason=error_text(error))


async def suspend(database: Database, parser: str, version: str, reason: str) -> bool:
    """End a trial that exceeds its limits, with an event; False if it had ended."""
    async with database.transaction() as connection:
        ended = await end_trial(connection, parser, version)
        if ended is None:
            return False
        payload = {
            "parser": parser,
            "version": version,
            "active_version": ended.active_version,
            "breaks": MOST_BREAKS,
            "reason": reason,
        }
        await record_events(connection, [NewEvent(EventKind.TRIAL_ENDED, None, None, payload)])
    return True


def _trial(plan: RolloutPlan, parser: str, version: str) -> Trial:
    decided = plan.rollouts.get(parser)
    return parser, version, None if decided is None else decided.updated_at
