"""Processes that read pages, which several tests use one after the other.

The start of one takes a fifth of a second of processor time, more than the crawl of most tests. A
process without pending requests has no state but its contexts, and forgets them at the end.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from forager.processes.child import ChildProcess
from forager.processes.sandbox import Sandbox
from forager.processes.usage import RequestUsage

# these keep nothing of a request but its context
MODULES = ("forager.crawl.extraction.process", "forager.parsers.reader", "forager.images.inspector")

_spawn, _stop = Sandbox._spawn, Sandbox.stop
Kept = tuple[ChildProcess, socket.socket]
Key = tuple[str, bytes]


class KeptSandboxes:
    """Idle processes by their module and argument."""

    def __init__(self) -> None:
        self._idle: defaultdict[Key, list[Kept]] = defaultdict(list)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Sandboxes that start in this block use the idle processes, and keep them."""

        async def spawn(sandbox: Sandbox) -> None:
            if kept := self._take(sandbox):
                await _attach(sandbox, *kept)
            else:
                await _spawn(sandbox)

        async def stop(sandbox: Sandbox) -> None:
            if (kept := await _detached(sandbox)) is not None:
                self._idle[_key(sandbox)].append(kept)
            else:
                await _stop(sandbox)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Sandbox, "_spawn", spawn)
            patch.setattr(Sandbox, "stop", stop)
            yield

    def close(self) -> None:
        for child, line in (each for idle in self._idle.values() for each in idle):
            line.close()
            child.kill()
            while not child._reaped:
                time.sleep(0.001)
        self._idle.clear()

    def _take(self, sandbox: Sandbox) -> Kept | None:
        idle = self._idle[_key(sandbox)] if sandbox._module in MODULES else []
        while idle:
            child, line = idle.pop()
            if _lives(child):
                return child, line
            line.close()
        return None


def _key(sandbox: Sandbox) -> Key:
    return sandbox._module, sandbox._argument


async def _attach(sandbox: Sandbox, child: ChildProcess, line: socket.socket) -> None:
    # what the process exits with is for the loop of this test
    child._loop, child.exited = asyncio.get_running_loop(), asyncio.Event()
    reader, writer = await asyncio.open_unix_connection(sock=line, limit=2**20)
    sandbox._child, sandbox._reader, sandbox._writer = child, reader, writer
    sandbox._effort = RequestUsage()
    sandbox._ready, sandbox._was_stopped, sandbox._broken_limit = True, False, None


async def _detached(sandbox: Sandbox) -> Kept | None:
    """The process with its line, if it can be used again."""
    child, transport = sandbox._child, sandbox._writer.transport
    if sandbox._module not in MODULES or sandbox._waiting or not sandbox._ready:
        return None
    for key in list(sandbox._contexts):
        sandbox.forget(key)
    await asyncio.sleep(0)  # until it is sent
    if transport.is_closing() or transport.get_write_buffer_size() or not _lives(child):
        return None
    for task in sandbox._tasks:
        task.cancel()
    await asyncio.gather(*sandbox._tasks, return_exceptions=True)
    line = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
    transport.abort()
    await asyncio.sleep(0)
    return child, line


def _lives(child: ChildProcess) -> bool:
    with child._lock:
        return (
            not child._reaped
            and os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None
        )
