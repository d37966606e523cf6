"""Domain alarms: results are withheld when a whole domain suddenly responds with the wrong pages.

A domain raises an alarm when its known pages are suddenly gone, when it responds with challenges,
or when different products get the same name. The alarm ends when the domain recovers, or when an
operator accepts or discards the withheld results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from forager.amounts import counted
from forager.db.database import Connection, Database
from forager.errors import ErrorKind, InvalidInput, NotFound
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.failures.cause import Cause, one_line
from forager.fetch.budgets.budget import block_domain, unblock_domain
from forager.fetch.domains.service import domain_name, domains_of
from forager.hints import Hint, action
from forager.products.replacements import (
    Replacement,
    SeenIdentity,
    delete_replacements_of_domain,
    find_replaced,
    give_up_products,
    replacement_of,
    withdraw_products,
)
from forager.products.validation.identity import Identity
from forager.settings import Settings
from forager.tasks.stages.attempt import Attempt, LeasedTask, TaskOutcome
from forager.tasks.store import alarms as store
from forager.tasks.store.alarms import DECAY, NEAR_ZERO, DomainAlarm, DomainHealth

__all__ = ["DomainAlarm"]

GONE = frozenset({404, 410})
_VISITED = frozenset(
    {TaskOutcome.OK, TaskOutcome.UNCHANGED, TaskOutcome.FAILED, TaskOutcome.WITHHELD}
)
# an alarm starts when this share of a minimum number of visits is gone, and ends below the other
_GONE_VISITS = 10
_GONE_SHARE = 0.65
_RECOVERED = 0.3
_BLOCKED_VISITS = 3
_SAME_NAMES = 3
# a domain that responds with challenges pauses for as long as it has done so, within these limits;
# requests that were in flight when a pause began do not lengthen it
_BLOCK_SECONDS, _LONGEST_BLOCK = 60.0, 6 * 3600.0


class Decision(StrEnum):
    """An operator's decision about withheld results."""

    ACCEPT = "accept"
    DISCARD = "discard"


async def hold_suspicious(connection: Connection, attempts: Sequence[Attempt]) -> list[Attempt]:
    """Count the outcomes of visits, raise and end alarms; results under an alarm are withheld."""
    by_domain: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        if _shows_health(attempt):
            by_domain[attempt.task.domain_id].append(attempt)
    suspicious = [id_ for id_, group in by_domain.items() if any(map(_is_suspicious, group))]
    known = await store.lock_health(connection, sorted(by_domain), create=suspicious)
    alarms: dict[int, str] = {}
    for before in known:
        after = _counted(before, by_domain[before.domain_id])
        if after != before:
            await _change(connection, before, after)
        if after.blocked_in_a_row > before.blocked_in_a_row:
            seconds = min(max(_BLOCK_SECONDS, before.alarm_age), _LONGEST_BLOCK)
            await block_domain(connection, after.domain_id, seconds)
        if after.alarm is not None:
            alarms[after.domain_id] = after.alarm
    return [_withhold(attempt, alarms.get(attempt.task.domain_id)) for attempt in attempts]


def _shows_health(attempt: Attempt) -> bool:
    """Without a response the state of the page is unknown."""
    responded = attempt.http_status is not None or _is_blocked(attempt)
    return (attempt.outcome in _VISITED and responded) or _is_gone(attempt)


def _is_gone(attempt: Attempt) -> bool:
    """Whether a known page does not exist any more, before or after its retries."""
    known = attempt.task.parser_version is not None
    failed = attempt.outcome in (TaskOutcome.FAILED, TaskOutcome.RETRY)
    return known and failed and attempt.http_status in GONE


def _is_blocked(attempt: Attempt) -> bool:
    return attempt.cause is not None and attempt.cause.kind is ErrorKind.BLOCKED


def _is_suspicious(attempt: Attempt) -> bool:
    return _is_gone(attempt) or _is_blocked(attempt)


def _counted(health: DomainHealth, visits: Sequence[Attempt]) -> DomainHealth:
    for visit in visits:
        if _is_blocked(visit):
            health = replace(health, blocked_in_a_row=health.blocked_in_a_row + 1)
            continue
        gone = _is_gone(visit)
        if gone and visit.task.retry_count:  # the first attempt of the visit has counted
            continue
        share = health.gone_share * DECAY + (1 - DECAY) * gone
        counted_visits = 0 if share < NEAR_ZERO else health.visits + 1
        health = replace(health, gone_share=share, visits=counted_visits, blocked_in_a_row=0)
    return _with_alarm(health)


def _with_alarm(health: DomainHealth) -> DomainHealth:
    """Raise or end the alarm according to the counts."""
    gone = health.gone_share >= _GONE_SHARE and health.visits >= _GONE_VISITS
    blocked = health.blocked_in_a_row >= _BLOCKED_VISITS
    same = health.same_in_a_row >= _SAME_NAMES
    if health.alarm is None and not health.accepted:
        reason = "blocked" if blocked else "gone" if gone else "same_page" if same else None
        return replace(health, alarm=reason)
    over = {
        "gone": health.gone_share < _RECOVERED,
        "blocked": health.blocked_in_a_row == 0,
        "same_page": health.same_in_a_row == 0,
    }
    if health.alarm is not None and over[health.alarm]:
        return replace(health, alarm=None)
    return replace(health, accepted=False) if health.accepted and all(over.values()) else health


def _withhold(attempt: Attempt, alarm: str | None) -> Attempt:
    if _is_blocked(attempt) or (alarm is not None and _is_gone(attempt)):
        return replace(attempt, outcome=TaskOutcome.WITHHELD)
    return attempt


async def _change(connection: Connection, before: DomainHealth, after: DomainHealth) -> None:
    await store.update_health(connection, after)
    if before.alarm == after.alarm:
        return
    kind = EventKind.DOMAIN_RECOVERED if after.alarm is None else EventKind.DOMAIN_ALARM
    payload = {"reason": after.alarm or before.alarm}
    await record_events(connection, [NewEvent(kind, None, after.domain_id, payload)])
    if after.alarm is not None:
        await block_domain(connection, after.domain_id, _BLOCK_SECONDS)


_ANOTHER_PRODUCT = "the page shows another product than before"
# how a visit ends whose result is not stored, and why
WithheldResult = tuple[TaskOutcome, Cause]


@dataclass(frozen=True, slots=True)
class ReadName:
    """The identity of the product that the page of a task shows now."""

    task: LeasedTask
    identity: Identity
    # after redirects
    url: str | None = None

    @property
    def name(self) -> str:
        return self.identity.name

    @property
    def reason(self) -> str:
        return one_line(f"{_ANOTHER_PRODUCT}: {self.name}")

    @property
    def seen(self) -> SeenIdentity:
        task, page = self.task, None if self.task.ref is None else str(self.task.ref)
        return SeenIdentity(task.id, task.domain_id, self.identity, self.url or task.url, page)


async def hold_same_pages(
    connection: Connection, read: Iterable[ReadName], settings: Settings
) -> dict[int, WithheldResult]:
    """Results not to store, by task: products with the name of others, or other products.

    Another product at a URL is stored once it was accepted. The visit counts as failed if it shows
    neither the known product nor that of the visit before.
    """
    names = list(read)
    known = await find_replaced(connection, [each.seen for each in names], settings)
    found = await store.select_last_messages(connection, list(known.renamed))
    reasons = {each.task.id: each.reason for each in names}
    confirmed = {id_ for id_, text in found.items() if text == reasons[id_]} - set(known.replaced)
    by_domain: dict[int, list[ReadName]] = defaultdict(list)
    for each in names:
        by_domain[each.task.domain_id].append(each)
    withheld: dict[int, WithheldResult] = {}
    accepted: list[int] = []
    create = [each.task.domain_id for each in names if each.task.id in known.renamed]
    for before in await store.lock_health(connection, sorted(by_domain), create=create):
        after = before
        for each in by_domain[before.domain_id]:
            id_ = each.task.id
            if id_ in confirmed and after.alarm is None:
                continue
            replaced = known.replaced.get(id_)
            is_repeated = replaced is not None and replaced.visits > 1 and after.alarm is None
            if not is_repeated:
                after = _named(after, each.name, is_renamed=id_ in known.renamed)
            doubted = (after.same_in_a_row > 1 and not is_repeated) or after.alarm == "same_page"
            if replaced is not None and (after.accepted or (replaced.is_accepted and not doubted)):
                accepted.append(replaced.product_id)
            elif id_ in known.renamed and (doubted or replaced) and not after.accepted:
                is_failed = replaced is not None and replaced.is_unstable and not doubted
                outcome = TaskOutcome.FAILED if is_failed else TaskOutcome.WITHHELD
                withheld[id_] = outcome, Cause(ErrorKind.VALIDATION, each.reason)
        if after != before:
            await _change(connection, before, after)
    if accepted:
        await give_up_products(connection, sorted(set(accepted)))
    return withheld


async def accept_replacement(database: Database, which: str) -> Replacement:
    """Store what the page of a product shows now as a new product, at the next visit."""
    async with database.transaction() as connection:
        found = await replacement_of(connection, which)
        tasks = await give_up_products(connection, [found.product_id])
        await store.visit_now(connection, tasks)
    return found


def _named(health: DomainHealth, name: str, *, is_renamed: bool) -> DomainHealth:
    if not is_renamed:
        return _with_alarm(replace(health, same_name=None, same_in_a_row=0))
    count = health.same_in_a_row + 1 if name == health.same_name else 1
    return _with_alarm(replace(health, same_name=name, same_in_a_row=count))


async def list_alarms(database: Database) -> list[DomainAlarm]:
    """Domains whose results are withheld, latest first."""
    return await database.run(store.select_alarms)


async def decide_alarm(database: Database, host: str, decision: Decision) -> int:
    """Accept or discard the withheld results of a domain; returns the number of tasks."""
    async with database.transaction() as connection:
        alarm = await _alarm_of(connection, host)
        [health] = await store.lock_health(connection, [alarm.domain_id], create=[])
        accepted = decision is Decision.ACCEPT
        task_ids = await store.select_withheld_tasks(
            connection, health.domain_id, gone=health.alarm == "gone"
        )
        if accepted:
            # until the domain recovers
            after = replace(health, alarm=None, accepted=True)
        else:
            # the next visits confirm nothing: a page that is still the same must be withheld again
            await store.discard_withheld(connection, health.domain_id)
            await delete_replacements_of_domain(connection, health.domain_id)
            same = min(1, health.same_in_a_row)
            after = DomainHealth(health.domain_id, same_name=health.same_name, same_in_a_row=same)
        if accepted and health.alarm == "gone":
            await withdraw_products(connection, task_ids)
        else:
            await store.visit_now(connection, task_ids)
        await store.update_health(connection, after)
        # not a Retry-After of the host that is longer than the block of the alarm
        block = timedelta(seconds=_BLOCK_SECONDS + 1)
        await unblock_domain(connection, health.domain_id, ends_by=alarm.raised_at + block)
        payload = {"reason": health.alarm, "decision": decision.value, "tasks": len(task_ids)}
        event = NewEvent(EventKind.DOMAIN_RECOVERED, None, health.domain_id, payload)
        await record_events(connection, [event])
    return len(task_ids)


async def describe_acceptance(database: Database, host: str) -> str:
    """What accepting the results of a domain would change, as a question."""
    async with database.connection() as connection:
        alarm = await _alarm_of(connection, host)
        gone = alarm.reason == "gone"
        tasks = len(await store.select_withheld_tasks(connection, alarm.domain_id, gone=gone))
    if gone:
        return (
            f"The pages of {counted(tasks, 'task')} of {alarm.domain} are missing. Discontinue "
            "their products and end the alarm?"
        )
    return (
        f"The results of {counted(tasks, 'task')} of {alarm.domain} are withheld because they look "
        "wrong. Visit these pages now, store what they show, and end the alarm?"
    )


async def _alarm_of(connection: Connection, host: str) -> DomainAlarm:
    """The alarm of a domain itself, or the only one of those that a host means."""
    name = domain_name(host)
    meant = await domains_of(connection, host)
    alarms = [each for each in await store.select_alarms(connection) if each.domain_id in meant]
    own = [alarm for alarm in alarms if alarm.domain == name] or alarms
    if not own:
        hint = Hint("{} lists alarms.", action("domains alarms"))
        raise NotFound(f"domain {name} has no alarm", hint=hint)
    if len(own) > 1:
        listed = ", ".join(alarm.domain for alarm in own)
        raise InvalidInput(f"several domains of {name} have an alarm: {listed}")
    return own[0]
