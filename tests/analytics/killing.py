"""A process that waits after each step for a signal, and is killed at one of them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path


async def kill_after(steps: int, *arguments: str | Path) -> None:
    """Start it, and kill it after this many steps, when it has begun the next."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    async with asyncio.timeout(60):
        for _ in range(steps):
            assert await process.stdout.readline()
            process.stdin.write(b"\n")
        process.kill()
        await process.wait()
