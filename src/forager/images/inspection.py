"""Looking into image files from outside: in a process with limits, which is started when needed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count

from forager.errors import ErrorKind, GiveUp
from forager.processes.sandbox import Sandbox, SandboxLimits

MODULE = "forager.images.inspector"
LIMITS = SandboxLimits(processes=1, seconds=10.0, memory_mb=640)


@dataclass(frozen=True, slots=True)
class Inspected:
    media_type: str
    extension: str
    width: int
    height: int


class Inspection:
    """Bytes in, facts out; GiveUp for whatever is no image that may be kept."""

    def __init__(self, limits: SandboxLimits = LIMITS) -> None:
        self._limits = limits
        self._numbers = count()
        self._process: Sandbox | None = None
        self._starting = asyncio.Lock()

    async def inspect(self, data: bytes) -> Inspected:
        process = await self._started()
        number = next(self._numbers)
        answer, _ = await process.ask(number, {"id": number}, data)
        if (refused := answer.get("refused", answer.get("error"))) is not None:
            raise GiveUp(str(refused), kind=ErrorKind.PARSE)
        return Inspected(
            answer["media_type"], answer["extension"], answer["width"], answer["height"]
        )

    async def close(self) -> None:
        if self._process is not None:
            await self._process.stop()
            self._process = None

    async def _started(self) -> Sandbox:
        async with self._starting:
            if self._process is None:
                memory = str(self._limits.memory_mb).encode()
                self._process = await Sandbox.start(MODULE, memory, self._limits, subject="image")
            return self._process
