"""Answers that get lost: the database does what it was asked, and whoever asked hears a timeout."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

from chaos.control import Control


def patches(control: Control) -> dict[str, Callable[[ModuleType], None]]:
    def change(module: ModuleType) -> None:
        honest = module.Database.connection
        chance = random.Random()  # noqa: S311 - not a secret

        @asynccontextmanager
        async def connection(self: Any) -> AsyncIterator[Any]:
            async with honest(self) as line:
                yield line
            # whatever was done is committed by now
            if chance.random() < control.lie_rate:
                control.note_lie()
                raise module.DatabaseUnavailable("the answer was lost (by the chaos harness)")

        module.Database.connection = connection

    return {"forager.db.database": change}
