"""Rollouts: the active version of each parser, and the canary beside it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from forager.db.database import Connection, Database
from forager.errors import InvalidInput, NotAllowed
from forager.hints import Hint, action
from forager.jobs.workers import select_without_parsers
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.registry import BYPASSED, find, is_included, registry
from forager.parsers.store import rollouts as store
from forager.parsers.store.rollouts import Bypass, Rollout
from forager.settings import Settings

__all__ = ["Bypass", "Rollout"]

# how long a worker caches the plan
REFRESH_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """All rollout decisions; the version of one may be `generic`: its pages are read generically.

    A parser whose version is not installed here runs in its newest installed one. A canary runs
    only where it is installed.
    """

    rollouts: Mapping[str, Rollout] = field(default_factory=dict)

    def versions_for(self, task_id: int) -> tuple[Mapping[str, str], Mapping[str, str] | None]:
        """The versions that count, and those that are tried on this task, if any are.

        The second names only parsers on trial: a page that another one reads needs no second
        reading. Whether a task is in a trial depends on nothing but its number.
        """
        active = {
            name: BYPASSED if rollout.is_generic else rollout.active_version
            for name, rollout in self.rollouts.items()
            if rollout.is_generic or rollout.active_version in registry().versions(name)
        }
        canary = {
            name: rollout.canary_version
            for name, rollout in self.rollouts.items()
            if rollout.canary_version is not None
            and rollout.canary_version in registry().versions(name)
            and _is_in_share(rollout, task_id)
        }
        return active, canary or None

    def active_version(self, parser: str) -> str | None:
        """The active version; None for an unknown parser."""
        versions = registry().versions(parser)
        decided = self.rollouts.get(parser)
        if decided is not None and (
            decided.is_generic or decided.active_version in versions or not versions
        ):
            return decided.active_version
        return versions[-1] if versions else None


def first_rollout(parser: str) -> Rollout:
    """What happens to an installed parser until a user decides.

    A first version runs as a canary on all its pages, and the generic extraction stays active;
    parsers that are part of Forager are active.
    """
    version = find(parser)
    if is_included(parser):
        return Rollout(parser, version)
    return Rollout(parser, GENERIC_NAME, canary_version=version, canary_share=1.0)


def _is_in_share(rollout: Rollout, task_id: int) -> bool:
    # a larger share includes the tasks of a smaller one
    key = f"{rollout.parser} {rollout.canary_version} {task_id}".encode()
    place = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) / 2**64
    return place < (rollout.canary_share or 0.0)


class Rollouts:
    """The cached plan of a worker."""

    def __init__(self, *, refresh: float = REFRESH_SECONDS) -> None:
        self._refresh = refresh
        self._plan = RolloutPlan()
        self._read_at: float | None = None

    async def current(self, database: Database) -> RolloutPlan:
        """Which version reads which pages, as read from the database at most seconds ago."""
        now = time.monotonic()
        if self._read_at is None or now - self._read_at >= self._refresh:
            self._plan = await self._load(database)
            self._read_at = now
        return self._plan

    async def _load(self, database: Database) -> RolloutPlan:
        """Load the plan, and pin undecided versions: installing a newer one changes nothing."""
        plan = await load_plan(database)
        if undecided := [each for each in plan.rollouts.values() if each.updated_at is None]:
            await database.run(store.pin_versions, undecided)
            plan = await load_plan(database)
        return plan


async def load_plan(database: Database) -> RolloutPlan:
    """The decisions; for parsers without one, what their workers will decide."""
    first = {name: first_rollout(name) for name in registry().plugins}
    rows = await database.run(store.select_rollouts)
    return RolloutPlan({**first, **{row.parser: row for row in rows}})


async def list_bypassed(database: Database) -> list[Bypass]:
    """Parsers whose pages are read generically at present, with the reasons."""
    return await database.run(store.select_bypassed)


async def workers_without(
    database: Database, settings: Settings, versions: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """The running workers that lack each of these parser versions."""
    rows = await database.run(select_without_parsers, versions, stale_after=settings.stale_after)
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for parser, version, worker in rows:
        found[parser, version] = (*found.get((parser, version), ()), worker)
    return found


async def roll_out(
    database: Database,
    settings: Settings,
    parser: str,
    version: str,
    *,
    canary: float | None = None,
) -> Rollout:
    """Activate a version; or, with a share, run it as a canary beside the active one.

    The version `generic` ends the use of a parser.
    """
    find(parser, None if version == GENERIC_NAME and canary is None else version)
    if canary is not None and not 0 < canary <= 1:
        raise InvalidInput(
            f"{canary:g} is not a share of the tasks", hint="More than 0 %, at most 100 %."
        )
    async with database.transaction() as connection:
        known = await store.lock_rollout(connection, parser)
        wanted = (
            _made_active(known or first_rollout(parser), version)
            if canary is None
            else _tried(known or first_rollout(parser), version, canary)
        )
        done = await store.put_rollout(connection, wanted)
    if version == GENERIC_NAME:
        return done
    missing = await workers_without(database, settings, [(parser, version)])
    return replace(done, missing_on=missing.get((parser, version), ()))


def _made_active(known: Rollout, version: str) -> Rollout:
    before = known.active_version
    if before == version:
        # repeating a decision must not lose the previous version
        return Rollout(known.parser, version, known.previous_version)
    return Rollout(known.parser, version, previous_version=before)


def _tried(known: Rollout, version: str, share: float) -> Rollout:
    if known.active_version == version:
        raise InvalidInput(
            f"parser {known.parser} runs in version {version} already: there is nothing to try",
            hint=f"Try another one, or roll out the old one first. {_installed(known.parser)}",
        )
    return replace(known, canary_version=version, canary_share=share)


async def roll_back(database: Database, parser: str) -> Rollout:
    """Undo the last step: end the canary, or return to the previous version."""
    async with database.transaction() as connection:
        known = await store.lock_rollout(connection, parser)
        if known is None and parser in registry().plugins:
            known = first_rollout(parser)
        if known is None or (known.canary_version is None and known.previous_version is None):
            raise NotAllowed(
                f"there is nothing to roll back for parser {parser!r}",
                hint=Hint(
                    "{} activates an installed version.",
                    action("parsers rollout", parser, "VERSION"),
                ),
            )
        return await store.put_rollout(connection, _undone(known))


async def end_trial(connection: Connection, parser: str, version: str) -> Rollout | None:
    """End a trial in the transaction of the caller; None if it is not running."""
    known = await store.lock_rollout(connection, parser)
    if known is None or known.canary_version != version:
        return None
    return await store.put_rollout(connection, _undone(known))


def _undone(known: Rollout) -> Rollout:
    if known.canary_version is not None:
        return replace(known, canary_version=None, canary_share=None)
    assert known.previous_version is not None
    if known.previous_version != GENERIC_NAME:
        # workers would replace a missing version by the newest, which is to be rolled back
        find(known.parser, known.previous_version)
    return Rollout(known.parser, known.previous_version)


def _installed(parser: str) -> str:
    return f"Installed: {', '.join(registry().versions(parser))}."
