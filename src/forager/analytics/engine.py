"""DuckDB, in a process that can be stopped."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from forager.errors import ForagerError, InvalidInput, NotAllowed

LONGEST_QUERY = 60.0
LONGEST_REWRITE = 3600.0


def require_engine() -> None:
    """Raise an error if DuckDB is not installed, before anything is created."""
    if find_spec("duckdb") is None:
        raise InvalidInput(
            "analytics needs DuckDB, which is not installed",
            hint="Install it with: pip install 'forager-crawler[analytics]'",
        )


async def query_files(
    sql: str, folder: Path, *, longest: float = LONGEST_QUERY
) -> tuple[list[str], list[list[Any]]]:
    """The columns and rows of a query over the files of the lake."""
    found = await _run("query", {"sql": sql}, folder, longest)
    return found["columns"], found["rows"]


async def rewrite_months(files: Mapping[str, Path], folder: Path) -> dict[str, dict[str, Any]]:
    """Add the rows of a CSV file for each dataset to its months; see `duckdb_process.rewrite`."""
    names = {name: str(path) for name, path in files.items()}
    found: dict[str, dict[str, Any]] = await _run(
        "rewrite", {"files": names}, folder, LONGEST_REWRITE
    )
    return found


async def _run(command: str, arguments: dict[str, Any], folder: Path, longest: float) -> Any:
    require_engine()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "forager.analytics.duckdb_process",
        cwd=folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(longest):
            output, errors = await process.communicate(orjson.dumps([command, arguments]))
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
    return orjson.loads(output)
