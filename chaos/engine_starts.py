"""Record the starts of the engine of each crawl: each may fetch pages in flight again."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from chaos.control import Control


def patches(control: Control) -> dict[str, Callable[[ModuleType], None]]:
    def record(module: ModuleType) -> None:
        run = module.Engine.run

        async def recorded_run(self: Any) -> Any:
            control.record_engine_start(self._context.lease.job_id)
            return await run(self)

        module.Engine.run = recorded_run

    return {"forager.crawl.engine": record}
