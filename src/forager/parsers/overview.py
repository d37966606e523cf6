"""All parsers at a glance: installed and active versions, and their success rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from forager.db.database import Database
from forager.parsers.pattern import GENERIC_NAME
from forager.parsers.plugins import BrokenPlugin
from forager.parsers.rates import ParserRate, parser_rates, share
from forager.parsers.registry import ParserVersion, all_parsers, load_parsers
from forager.parsers.rollouts import RolloutPlan, list_bypassed, load_plan, workers_without
from forager.settings import Settings

ACTIVE, CANARY, IDLE, MISSING = "active", "canary", "idle", "missing"


@dataclass(frozen=True, slots=True)
class ParserLine:
    """One version of a parser; `missing` ones should run, but are not installed."""

    name: str
    version: str
    state: str
    canary_share: float | None
    patterns: tuple[str, ...]
    origin: str
    recent_pages: int
    recent_rate: float | None
    week_pages: int
    week_rate: float | None
    # running workers that should use this version and do not have it
    missing_on: tuple[str, ...] = ()
    # it is tried beside the generic extraction, whose values count
    is_first: bool = False
    # until when the generic extraction reads its pages, because it keeps breaking, and why
    bypassed_until: datetime | None = None
    bypass_reason: str | None = None


@dataclass(frozen=True, slots=True)
class ParserOverview:
    """All parsers, and the plug-ins that cannot be loaded."""

    parsers: list[ParserLine]
    broken: tuple[BrokenPlugin, ...]


async def overview(database: Database, settings: Settings) -> ParserOverview:
    broken = load_parsers(settings.parser_modules).broken
    installed = all_parsers()
    plan = await load_plan(database)
    every = [*installed, *_missing(plan, installed)]
    rates = await parser_rates(database, [(each.name, each.version) for each in every])
    lines = [_line(each, plan, rates[(each.name, each.version)]) for each in every]
    wanted = [
        (each.name, each.version)
        for each in lines
        if each.name in plan.rollouts
        and plan.rollouts[each.name].updated_at is not None
        and each.state != IDLE
    ]
    missing = await workers_without(database, settings, wanted)
    bypassed = {(each.parser, each.version): each for each in await list_bypassed(database)}
    return ParserOverview(
        [
            replace(
                each,
                missing_on=missing.get(key, ()),
                bypassed_until=bypassed[key].until if key in bypassed else None,
                bypass_reason=bypassed[key].reason if key in bypassed else None,
            )
            for each in lines
            for key in ((each.name, each.version),)
        ],
        broken,
    )


def _missing(plan: RolloutPlan, installed: list[ParserVersion]) -> list[ParserVersion]:
    known = {(each.name, each.version) for each in installed}
    wanted = [
        (rollout.parser, version)
        for rollout in plan.rollouts.values()
        for version in (rollout.active_version, rollout.canary_version)
        if version not in (None, GENERIC_NAME)
    ]
    return [ParserVersion(*each, (), "") for each in wanted if each not in known]


def _line(each: ParserVersion, plan: RolloutPlan, rate: ParserRate) -> ParserLine:
    state, canary_share = _state(each, plan)
    rollout = plan.rollouts.get(each.name)
    return ParserLine(
        name=each.name,
        version=each.version,
        state=state,
        canary_share=canary_share,
        patterns=each.patterns,
        origin=each.origin,
        recent_pages=rate.recent_pages,
        recent_rate=share(rate.recent_good, rate.recent_pages),
        week_pages=rate.week_pages,
        week_rate=share(rate.week_good, rate.week_pages),
        is_first=state == CANARY and rollout is not None and rollout.is_generic,
    )


def _state(each: ParserVersion, plan: RolloutPlan) -> tuple[str, float | None]:
    if not each.origin:
        return MISSING, None
    if plan.active_version(each.name) == each.version:
        return ACTIVE, None
    rollout = plan.rollouts.get(each.name)
    if rollout is not None and rollout.canary_version == each.version:
        return CANARY, rollout.canary_share
    return IDLE, None
