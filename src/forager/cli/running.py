"""From a command to the service it calls: settings, an event loop, the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from forager.cli.flags import flags_of

if TYPE_CHECKING:
    from forager.jobs.queue import Queue

Answer = TypeVar("Answer")


def with_queue(context: typer.Context, ask: Callable[[Queue], Awaitable[Answer]]) -> Answer:
    """The queue's answer to one question."""
    from forager.jobs.kinds import load_kinds
    from forager.jobs.queue import open_queue

    settings = flags_of(context).load()

    async def answer() -> Answer:
        load_kinds(settings.job_modules)
        async with open_queue(settings, name="forager cli") as queue:
            return await ask(queue)

    return run(answer())


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    return asyncio.run(work)
