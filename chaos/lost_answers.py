"""Lost answers: the database commits, but the client receives a timeout."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

from chaos.control import Control


def patches(control: Control) -> dict[str, Callable[[ModuleType], None]]:
    def change(module: ModuleType) -> None:
        original = module.Database.connection
        chance = random.Random()  # noqa: S311 - not a secret

        @asynccontextmanager
        async def connection(self: Any) -> AsyncIterator[Any]:
            async with original(self) as line:
                yield line
            # the transaction is committed by now
            if chance.random() < control.lost_answer_rate:
                control.record_lost_answer()
                raise module.DatabaseUnavailable("the answer was lost (by the chaos harness)")

        module.Database.connection = connection

    return {"forager.db.database": change}
