"""A pool of sandboxes: each question goes to the one with the fewest."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from forager.processes.sandbox import Answer, Sandbox, SandboxLimits
from forager.processes.serving import encode_frame


class SandboxPool:
    """Processes that run one module. They start with the first question, unless started before."""

    def __init__(
        self, module: str, argument: bytes, limits: SandboxLimits, *, subject: str = "page"
    ) -> None:
        self._module = module
        self._argument = argument
        self._limits = limits
        self._subject = subject
        self._numbers = count()
        self._updates: list[bytes] = []
        self._sandboxes: list[Sandbox] = []
        self._starting: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        for sandbox in self._sandboxes:
            await sandbox.stop()
        self._sandboxes = []

    async def start(self) -> None:
        if self._starting is None or _has_failed(self._starting):
            self._starting = asyncio.create_task(self._start())
        if not self._starting.done():
            # a caller that is canceled must not leave the others without processes
            await asyncio.shield(self._starting)
        self._starting.result()

    async def ask(self, header: dict[str, Any], body: bytes) -> Answer:
        """The answer to one question; GiveUp if it cannot be answered within the limits."""
        await self.start()
        number = next(self._numbers)
        sandbox = min(self._sandboxes, key=lambda each: each.load)
        return await sandbox.ask(number, {**header, "id": number}, body)

    def update(self, header: dict[str, Any], argument: bytes) -> None:
        """Something that concerns all later questions; processes that start get `argument`."""
        self._argument = argument
        self._updates.append(encode_frame(header, []))
        for sandbox in self._sandboxes:
            sandbox.update(self._updates[-1], argument)

    async def _start(self) -> None:
        for _ in range(self._limits.processes):
            known = len(self._updates)
            sandbox = await Sandbox.start(
                self._module, self._argument, self._limits, subject=self._subject
            )
            self._sandboxes.append(sandbox)
            for message in self._updates[known:]:  # that came while it started
                sandbox.update(message, self._argument)


def _has_failed(task: asyncio.Task[None]) -> bool:
    """The machine may have had no process to spare: the next question tries again."""
    return task.done() and (task.cancelled() or task.exception() is not None)
