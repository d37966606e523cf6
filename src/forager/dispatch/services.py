"""What runs beside the scheduler, as the settings say how tasks reach the workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from forager.db.database import Database
from forager.dispatch.upkeep import HintUpkeep
from forager.settings import Dispatch, Settings


class Service(Protocol):
    async def run(self) -> None: ...


def dispatch_services(database: Database, settings: Settings) -> Sequence[Service]:
    if settings.dispatch is not Dispatch.CELERY:
        return [HintUpkeep(database)]
    from forager.dispatch.relay import Relay
    from forager.dispatch.sweeper import Sweeper

    return [Relay(database, settings), Sweeper(database, settings)]
