"""Jobs that harm the runner that they share with crawls.

The setting `job_modules` of the cluster names this module.
"""

from __future__ import annotations

import asyncio
import time

from forager.jobs.context import JobContext
from forager.jobs.kinds import JobKind, Outcome, register

BLOCKS = "block the event loop"
EXHAUSTS_MEMORY = "exhaust memory"
FOREVER = 1e6
PIECE = 10_000_000


async def _block(_: JobContext) -> Outcome:
    while True:
        time.sleep(FOREVER)  # noqa: ASYNC251 - the fault


async def _exhaust_memory(_: JobContext) -> Outcome:
    pieces = []
    while True:
        pieces.append(bytearray(b"x" * PIECE))
        await asyncio.sleep(0.01)


register(JobKind(BLOCKS, _block, own_process=False))
register(JobKind(EXHAUSTS_MEMORY, _exhaust_memory, own_process=False))
