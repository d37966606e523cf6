"""Runs prepared queries with chdb or a ClickHouse server, for all adapters."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from forager.analytics.clickhouse import connected
from forager.analytics.dataset import DATASETS, Dataset, column_types
from forager.analytics.lake import Manifest, lake_folder, read_manifest
from forager.analytics.loading import complete_until, tables
from forager.analytics.queries import QUERIES, Query, query_named
from forager.errors import ForagerError, InvalidInput, NotAllowed
from forager.settings import Settings

DEFAULT_DAYS = 30
# ten years: times in ClickHouse begin in 1970
MOST_DAYS = 3_660
MOST_ROWS = 1_000

# the time until which it is complete, and the answer in ClickHouse's JSONCompact
Found = tuple[datetime | None, dict[str, Any]]
NOTHING: Found = (None, {"meta": (), "data": ()})


@dataclass(frozen=True, slots=True)
class Answer:
    """`is_cut`: there are more rows. Nothing before `complete_until` is missing.

    Without that time there was no sync yet, and there are no rows.
    """

    name: str
    days: int
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool
    complete_until: datetime | None


def list_queries() -> Sequence[Query]:
    return tuple(QUERIES.values())


async def answer(
    settings: Settings, name: str, *, days: int = DEFAULT_DAYS, limit: int = 100
) -> Answer:
    """Run a prepared query over the last days."""
    query = query_named(name)
    _check("days", days, MOST_DAYS)
    _check("limit", limit, MOST_ROWS)
    # one more row shows whether there are more
    run = _query_files if settings.clickhouse_url is None else _query_server
    until, found = await run(settings, query, {"days": days, "rows": limit + 1})
    return Answer(
        name,
        days,
        tuple(str(column["name"]) for column in found["meta"]),
        tuple(tuple(map(_number, found["meta"], row)) for row in found["data"][:limit]),
        len(found["data"]) > limit,
        until,
    )


async def _query_files(settings: Settings, query: Query, values: dict[str, int]) -> Found:
    folder = lake_folder(settings)
    manifest = read_manifest(folder)
    if manifest is None:
        return NOTHING
    sql = query.sql.format(**values, **sources_of(manifest))
    return manifest.complete_until, await query_chdb(sql, folder)


async def _query_server(settings: Settings, query: Query, values: dict[str, int]) -> Found:
    assert settings.clickhouse_url is not None
    async with connected(settings.clickhouse_url) as server:
        until = await complete_until(server)
        if until is None:
            return NOTHING
        return until, await server.query(query.sql.format(**values, **tables()))


def _number(column: dict[str, str], value: Any) -> Any:
    """ClickHouse writes numbers of 64 bits as texts, for the sake of JavaScript."""
    return int(value) if isinstance(value, str) and "Int" in column["type"] else value


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidInput(f"{name} must be between 1 and {most:,}")


LONGEST = 60.0
LIMITS = "max_memory_usage = 2000000000, max_threads = 2, glob_expansion_max_elements = 100000"


async def query_chdb(sql: str, folder: Path, *, longest: float = LONGEST) -> dict[str, Any]:
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


def sources_of(manifest: Manifest) -> dict[str, str]:
    """The FROM clause of each dataset; only files that the manifest names are read."""
    return {each.name: _source(each, manifest) for each in DATASETS}


def _source(dataset: Dataset, manifest: Manifest) -> str:
    rows = _files(dataset, [file.path for file in manifest.of(dataset.name)])
    if not dataset.has_versions:
        return rows
    return f"(SELECT * FROM {rows} ORDER BY at DESC LIMIT 1 BY id)"


def _files(dataset: Dataset, paths: list[str]) -> str:
    structure = _quoted(", ".join(f"{name} {kind}" for name, kind in column_types(dataset).items()))
    if not paths:
        return f"null({structure})"
    # generated names, below the folder that the engine works in: nothing to escape
    names = paths[0] if len(paths) == 1 else "{" + ",".join(paths) + "}"
    return f"file('{names}', Parquet, {structure})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"
