"""Looking into image files from outside: in a process with limits, which is started when needed."""

from __future__ import annotations

from dataclasses import dataclass

from forager.errors import ErrorKind, GiveUp
from forager.processes.pool import SandboxPool
from forager.processes.sandbox import SandboxLimits

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
        memory = str(limits.memory_mb).encode()
        self._sandboxes = SandboxPool(MODULE, memory, limits, subject="image")

    async def inspect(self, data: bytes) -> Inspected:
        answer, _ = await self._sandboxes.ask({}, data)
        if (refused := answer.get("refused", answer.get("error"))) is not None:
            raise GiveUp(str(refused), kind=ErrorKind.PARSE)
        return Inspected(
            answer["media_type"], answer["extension"], answer["width"], answer["height"]
        )

    async def close(self) -> None:
        await self._sandboxes.close()
