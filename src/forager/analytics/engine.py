"""Ask the lake: chdb, which is ClickHouse as a library, reads the files where they are."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from forager.errors import ForagerError, InvalidInput, NotAllowed

LONGEST = 60.0
LIMITS = "max_memory_usage = 2000000000, max_threads = 2, glob_expansion_max_elements = 100000"


async def ask_chdb(sql: str, folder: Path, *, longest: float = LONGEST) -> dict[str, Any]:
    """The answer as ClickHouse's JSONCompact: `meta` and `data`."""
    if find_spec("chdb") is None:
        raise InvalidInput(
            "analytics needs chdb, which is not installed",
            hint="Install it with: pip install 'forager-crawler[analytics]'",
        )
    output = await _run(f"{sql}\nSETTINGS {LIMITS}", folder, longest)
    answer: dict[str, Any] = orjson.loads(output)
    return answer


async def _run(sql: str, folder: Path, longest: float) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "forager.analytics.chdb_process",
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(longest):
            output, errors = await process.communicate(sql.encode())
    except TimeoutError:
        raise NotAllowed(
            f"the answer took longer than {longest:g} s", hint="Ask for fewer days."
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise ForagerError(f"the lake cannot be read: {errors.decode(errors='replace').strip()}")
    return output
