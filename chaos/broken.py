"""Switches that break a promise on purpose, to prove that the harness detects it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import StrEnum
from types import ModuleType
from typing import Any

from forager.errors import InvalidInput

Patch = Callable[[ModuleType], None]

# long enough for a check between the two transactions
GAP = 0.5
FOREVER = 1e9
NO_LIMIT = 1000


class Switch(StrEnum):
    NO_LEASE_CHECK = "no-lease-check"
    CHECKPOINT_OUTSIDE = "checkpoint-outside-transaction"
    NO_OUTBOX = "no-outbox"
    DOUBLE_COUNT = "double-count"
    NO_BUDGET = "no-budget"
    FETCH_TWICE = "fetch-twice"


def patches(names: str) -> dict[str, Patch]:
    """The patches of switches, whose names are separated by commas."""
    return {
        module: patch
        for name in filter(None, names.split(","))
        for module, patch in _SWITCHES[Switch(name)].items()
    }


def checked_switch(name: str | None) -> Switch | None:
    try:
        return None if name is None else Switch(name)
    except ValueError:
        known = ", ".join(Switch)
        raise InvalidInput(f"unknown switch {name!r}", hint=f"Use one of: {known}") from None


# --- no lease check: a runner that lost its lease continues to write, and does not stop -----------


def _hold_nothing(module: ModuleType) -> None:
    from chaos.store import broken as store

    module.hold_lease = store.hold_nothing  # type: ignore[attr-defined]


def _keep_all(module: ModuleType) -> None:
    async def lock_leased(connection: Any, who: Any, tasks: Sequence[Any]) -> set[int]:  # noqa: ARG001
        return {task.id for task in tasks}

    module.lock_leased = lock_leased  # type: ignore[attr-defined]


def _no_deadline(module: ModuleType) -> None:
    begin = module.LeaseMonitor.__init__

    def patient(self: Any, *given: Any, **named: Any) -> None:
        begin(self, *given, **{**named, "lease_limit": FOREVER})

    module.LeaseMonitor.__init__ = patient


# --- checkpoint outside the transaction: rows are committed before the ledger ---------------------


def _write_state_later(module: ModuleType) -> None:
    write, write_state = module.Committer.write, module.Committer.write_state

    async def nothing(self: Any, connection: Any) -> None:
        pass

    async def write_twice(self: Any, batch: Any) -> None:
        await write(self, batch)
        await asyncio.sleep(GAP)
        async with self.context.commit() as connection:
            await write_state(self, connection)

    module.Committer.write_state = nothing
    module.Committer.write = write_twice


# --- no outbox: events without messages, as if a process died before sending them -----------------


def _events_alone(module: ModuleType) -> None:
    from chaos.store import broken as store

    module.insert_events = store.insert_events_alone  # type: ignore[attr-defined]


# --- double count: one page of each commit is written twice ---------------------------------------


def _count_twice(module: ModuleType) -> None:
    update_state = module.update_state

    async def update(connection: Any, job_id: Any, values: dict[str, Any]) -> None:
        more = {name: values[name] + 1 for name in ("discovered", "fetched", "total_processed")}
        await update_state(connection, job_id, {**values, **more})

    module.update_state = update  # type: ignore[attr-defined]


# --- no budget: requests are sent without waiting for a slot --------------------------------------


def _no_limits(module: ModuleType) -> None:
    learn = module.DomainAccount.learn

    def learn_nothing(self: Any, *given: Any) -> None:
        learn(self, *given)
        self.delay, self.permits = 0.0, NO_LIMIT

    module.DomainAccount.learn = learn_nothing


# --- fetch twice: a page is requested again although its response has arrived ---------------------


def _fetch_twice(module: ModuleType) -> None:
    fetch = module.Visitor._fetch

    async def fetch_again(self: Any, *given: Any, **named: Any) -> Any:
        await fetch(self, *given, **named)
        return await fetch(self, *given, **named)

    module.Visitor._fetch = fetch_again


_SWITCHES: dict[Switch, dict[str, Patch]] = {
    Switch.NO_LEASE_CHECK: {
        "forager.jobs.store.leases": _hold_nothing,
        "forager.processes.lease_monitor": _no_deadline,
        "forager.tasks.store.stages": _keep_all,
    },
    Switch.CHECKPOINT_OUTSIDE: {"forager.crawl.batch": _write_state_later},
    Switch.NO_OUTBOX: {"forager.events.store": _events_alone},
    Switch.DOUBLE_COUNT: {"forager.crawl.store.state": _count_twice},
    Switch.NO_BUDGET: {"forager.fetch.budgets.accounts": _no_limits},
    Switch.FETCH_TWICE: {"forager.crawl.visit.visitor": _fetch_twice},
}
