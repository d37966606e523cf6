"""Threads of the archive's own: a batch must not wait behind slow name lookups for its sync."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="archive")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run it beside the event loop. Cancelling the caller does not stop it."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_pool, lambda: function(*args, **kwargs))
