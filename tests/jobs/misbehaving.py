"""Job kinds that misbehave in every way a handler can. Loaded in runners by `job_modules`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn
from unittest.mock import patch

from forager.db.database import Connection
from forager.errors import DatabaseUnavailable, GiveUp
from forager.jobs.context import JobContext
from forager.jobs.job import Job, Lease
from forager.jobs.kinds import Completed, JobKind, Outcome, Stopped, Waiting, register
from forager.jobs.queue import Queue
from forager.secrets import Vault

CHILD = "import time; time.sleep(600)"
DOUBLE_FORK = (
    "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', sys.argv[1]],"
    " start_new_session=True, stdout=subprocess.DEVNULL).pid)"
)


async def mark(context: JobContext, step: int, note: str = "") -> None:
    """Leave a trace of one step, all or nothing."""
    async with context.commit() as connection:
        await connection.execute(
            "INSERT INTO marks (job_id, lease, pid, step, note) VALUES (%s, %s, %s, %s, %s)",
            (context.job.id, context.lease.number, os.getpid(), step, note),
        )
        await context.save(connection, processed=step + 1, pending=0, data={})


async def next_step(context: JobContext) -> int:
    last = await context.checkpoint()
    return last.processed if last else 0


async def count(context: JobContext) -> Outcome:
    """Count from the last checkpoint on: every step must be there once, whatever happens."""
    for step in range(await next_step(context), context.job.payload["steps"]):
        if context.stopping.is_set():
            return Stopped()
        await asyncio.sleep(context.job.payload.get("seconds", 0))
        await mark(context, step)
    return Completed()


async def wait_for_ever(context: JobContext) -> Outcome:
    await mark(context, await next_step(context))
    await asyncio.Event().wait()
    return Completed()


async def note_cancellation(context: JobContext) -> Outcome:
    step = await next_step(context)
    await mark(context, step)
    try:
        await asyncio.Event().wait()
    finally:
        await mark(context, step + 1, "cancelled")
    return Completed()


async def wait_for_word(context: JobContext) -> Outcome:
    """Leave politely when asked to, and only then."""
    await mark(context, await next_step(context))
    await context.stopping.wait()
    return Stopped()


async def freeze(context: JobContext) -> Outcome:
    await mark(context, await next_step(context))
    time.sleep(600)
    return Completed()


async def fail(context: JobContext) -> Outcome:
    raise ValueError("the handler raised")


async def give_up(context: JobContext) -> Outcome:
    raise GiveUp("it will never work")


async def leave(context: JobContext) -> Outcome:
    os._exit(context.job.payload.get("code", 3))


async def exit_politely(context: JobContext) -> NoReturn:
    sys.exit(5)


async def open_secret(context: JobContext) -> Outcome:
    """Say what a text says that was sealed with the worker's key."""
    sealed = bytes.fromhex(context.job.payload["sealed"])
    await mark(context, 0, Vault(context.settings).decrypt(sealed, "test"))
    return Completed()


async def stop_unasked(context: JobContext) -> Outcome:
    return Stopped()


async def be_killed(context: JobContext) -> Outcome:
    os.kill(os.getpid(), context.job.payload["signal"])
    await asyncio.Event().wait()
    return Completed()


async def claim_memory(context: JobContext) -> Outcome:
    """Report more memory than a job may use among others."""
    context.memory_mb = 10_000
    await mark(context, await next_step(context))
    await context.stopping.wait()
    return Stopped()


async def lag(context: JobContext) -> Outcome:
    """Block the event loop again and again, for shorter than the limit."""
    await mark(context, await next_step(context))
    while not context.stopping.is_set():
        time.sleep(1.0)
        await asyncio.sleep(0.01)
    return Stopped()


async def extract_slowly(context: JobContext) -> Outcome:
    context.shared.backlog = lambda: 0 if context.stopping.is_set() else 1000
    return await wait_for_word(context)


async def swell(context: JobContext) -> Outcome:
    held = []
    while True:
        held.append(bytearray(b"x" * 10_000_000))
        await asyncio.sleep(0.01)


async def breed(context: JobContext) -> Outcome:
    """Children of every sort; then crash, or hang until killed."""
    own_group = subprocess.Popen([sys.executable, "-c", CHILD])
    own_session = subprocess.Popen([sys.executable, "-c", CHILD], start_new_session=True)
    forked = os.fork()
    if forked == 0:
        os.setsid()
        signal.pause()
    orphan = subprocess.run(
        [sys.executable, "-c", DOUBLE_FORK, CHILD], stdout=subprocess.PIPE, text=True, check=True
    )
    pids = [own_group.pid, own_session.pid, forked, int(orphan.stdout)]
    await mark(context, await next_step(context), " ".join(map(str, pids)))
    if context.job.payload.get("crash"):
        os._exit(9)
    await asyncio.Event().wait()
    return Completed()


async def refuse_to_stop(context: JobContext) -> Outcome:
    await mark(context, await next_step(context))
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


async def refuse_to_stop_and_park_late(context: JobContext) -> Outcome:
    """The runner learns from its supervisor that the job is parked, before its own answer."""
    park = Queue.park

    async def park_late(queue: Queue, lease: Lease) -> Job | None:
        parked = await park(queue, lease)
        await asyncio.sleep(600)
        return parked

    with patch.object(Queue, "park", park_late):
        return await refuse_to_stop(context)


async def wait_a_while(context: JobContext) -> Outcome:
    return Waiting(3600, "the host asks for an hour")


async def freeze_in_transaction(context: JobContext) -> Outcome:
    """Stop this process behind the fence, before the commit; continue after SIGCONT."""
    if await next_step(context) > 0:
        return Completed()
    async with context.database.transaction() as connection:
        await connection.execute(
            "SELECT hold_lease(%s, %s)", (context.lease.job_id, context.lease.number)
        )
        os.kill(os.getpid(), signal.SIGSTOP)
        await connection.execute(
            "INSERT INTO marks (job_id, lease, pid, step, note) VALUES (%s, %s, %s, 0, 'zombie')",
            (context.job.id, context.lease.number, os.getpid()),
        )
    return Completed()


async def fill_the_disk(context: JobContext) -> Outcome:
    """The server's own word for a full disk, while the switch is on."""
    async with context.commit() as connection:
        await connection.execute("SELECT disk_full()")
    await mark(context, 0)
    return Completed()


async def lose_answers(context: JobContext) -> Outcome:
    """After every commit the connection breaks before the response: the result is unknown."""
    step = await next_step(context)
    if step < context.job.payload["steps"]:
        await mark(context, step)
        raise DatabaseUnavailable("the line went dead after the commit")
    real = context.database.transaction

    @asynccontextmanager
    async def complete_and_lose() -> AsyncIterator[Connection]:
        async with real() as connection:
            yield connection
        raise DatabaseUnavailable("the line went dead after the completion")

    context.database.transaction = complete_and_lose  # type: ignore[method-assign]
    return Completed()


for _name, _run in {
    "count": count,
    "wait for ever": wait_for_ever,
    "wait for word": wait_for_word,
    "note cancellation": note_cancellation,
    "freeze": freeze,
    "fail": fail,
    "give up": give_up,
    "leave": leave,
    "exit politely": exit_politely,
    "open secret": open_secret,
    "stop unasked": stop_unasked,
    "be killed": be_killed,
    "swell": swell,
    "lag": lag,
    "extract slowly": extract_slowly,
    "claim memory": claim_memory,
    "breed": breed,
    "refuse to stop": refuse_to_stop,
    "refuse to stop and park late": refuse_to_stop_and_park_late,
    "wait a while": wait_a_while,
    "freeze in transaction": freeze_in_transaction,
    "fill the disk": fill_the_disk,
    "lose answers": lose_answers,
}.items():
    register(JobKind(_name, _run))
    # the same among other jobs
    register(JobKind(f"shared {_name}", _run, own_process=False))
