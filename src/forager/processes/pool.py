"""A pool of sandboxes: users take turns, and each request goes to the least busy process."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from itertools import count
from typing import Any

from forager.errors import GiveUp
from forager.processes.sandbox import Sandbox, SandboxContext, SandboxLimits, Withdrawn
from forager.processes.serving import Response
from forager.processes.turns import FairTurns

# requests that wait inside one process: enough to keep it busy while the loop does something else
QUEUE_LENGTH = 8


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
        self._turns = FairTurns(limits.processes * QUEUE_LENGTH)
        self._sandboxes: list[Sandbox] = []
        self._starting: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Requests that no process has received yet."""
        return self._turns.waiting

    async def close(self) -> None:
        """End all processes; requests in progress fail."""
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        for sandbox in self._sandboxes:
            await sandbox.stop()
        self._sandboxes = []

    async def start(self) -> None:
        """Start the processes now, so that the first request need not wait."""
        if self._starting is None or _has_failed(self._starting):
            self._starting = asyncio.create_task(self._start())
        if not self._starting.done():
            # a caller that is canceled must not leave the others without processes
            await asyncio.shield(self._starting)
        self._starting.result()

    async def request(
        self,
        header: dict[str, Any],
        body: bytes,
        *,
        context: SandboxContext | None = None,
        user: Hashable = None,
    ) -> Response:
        """The response to one request; GiveUp if it exceeds the limits.

        `context`: what the process must know before. `user`: users take turns, and one whose
        request ended a process has one turn at a time until the next success.
        """
        await self.start()
        while True:
            async with self._turns.turn(user):
                try:
                    response = await self._send(header, body, context, user)
                except (Withdrawn, GiveUp) as error:
                    if user is not None:
                        self._turns.limit(user)
                    if isinstance(error, GiveUp):
                        raise
                else:
                    self._turns.unlimit(user)
                    return response

    def drop(self, user: Hashable) -> None:
        """Raise TurnRefused for the requests of a user that no process has received yet."""
        self._turns.drop(user)

    async def _send(
        self, header: dict[str, Any], body: bytes, context: SandboxContext | None, user: Hashable
    ) -> Response:
        """Send a request to the least busy process, if possible none that a limited user uses."""
        avoided = self._turns.limited - {user}
        sandbox = min(self._sandboxes, key=lambda each: (each.works_for(avoided), each.load))
        number = next(self._numbers)
        return await sandbox.request(number, {**header, "id": number}, body, context, user)

    def forget(self, context: SandboxContext) -> None:
        """Free the memory of a context that is no longer used."""
        for sandbox in self._sandboxes:
            sandbox.forget(context.key)

    async def _start(self) -> None:
        for _ in range(self._limits.processes):
            self._sandboxes.append(
                await Sandbox.start(
                    self._module, self._argument, self._limits, subject=self._subject
                )
            )


def _has_failed(task: asyncio.Task[None]) -> bool:
    """Whether a start failed; the machine may have processes to spare at the next request."""
    return task.done() and (task.cancelled() or task.exception() is not None)
