"""Let each transaction state its lease, so that the audit triggers can compare it.

A runner hosts many jobs on shared connections: no process and no session belongs to one lease.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


def patches() -> dict[str, Callable[[ModuleType], None]]:
    return {"forager.jobs.store.leases": _state_lease}


def _state_lease(module: ModuleType) -> None:
    from chaos.store import audit

    hold_lease = module.hold_lease

    async def hold_stated_lease(connection: Any, lease: Any) -> Any:
        await audit.set_lease(connection, lease.number)
        return await hold_lease(connection, lease)

    module.hold_lease = hold_stated_lease  # type: ignore[attr-defined]
