"""A pool of sandboxes: each request goes to the one with the fewest pending requests."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from forager.processes.sandbox import Sandbox, SandboxLimits
from forager.processes.serving import Response, encode_frame


class SandboxPool:
    """Processes that run one module. They start with the first request, unless started before."""

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

    async def request(self, header: dict[str, Any], body: bytes) -> Response:
        """The response to one request; GiveUp if it exceeds the limits."""
        await self.start()
        number = next(self._numbers)
        sandbox = min(self._sandboxes, key=lambda each: each.load)
        return await sandbox.request(number, {**header, "id": number}, body)

    def update(self, header: dict[str, Any], argument: bytes) -> None:
        """Send a change for all later requests; processes that start later get `argument`."""
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
            for message in self._updates[known:]:  # sent while it started
                sandbox.update(message, self._argument)


def _has_failed(task: asyncio.Task[None]) -> bool:
    """Whether a start failed; the machine may have processes to spare at the next request."""
    return task.done() and (task.cancelled() or task.exception() is not None)
