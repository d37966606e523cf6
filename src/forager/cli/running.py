"""Run one service call for a command: settings, event loop, database or queue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from forager.cli.flags import flags_of

if TYPE_CHECKING:
    from forager.db.database import Database
    from forager.jobs.queue import Queue
    from forager.settings import Settings

Answer = TypeVar("Answer")


def with_database(
    context: typer.Context, ask: Callable[[Database, Settings], Awaitable[Answer]]
) -> Answer:
    """Return the result of `ask` on the configured database."""
    from forager.db.database import open_database

    settings = flags_of(context).load()

    async def answer() -> Answer:
        async with open_database(settings, name="forager cli") as database:
            return await ask(database, settings)

    return run(answer())


def with_queue(context: typer.Context, ask: Callable[[Queue], Awaitable[Answer]]) -> Answer:
    """Return the result of `ask` on the job queue."""
    from forager.jobs.kinds import load_kinds
    from forager.jobs.queue import Queue

    def answer(database: Database, settings: Settings) -> Awaitable[Answer]:
        load_kinds(settings.job_modules)
        return ask(Queue(database, settings))

    return with_database(context, answer)


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    return asyncio.run(work)
