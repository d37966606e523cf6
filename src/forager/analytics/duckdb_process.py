"""A process that works with DuckDB: arguments from standard input, an answer to standard output.

The engine takes much memory and an unknown time. In a separate process it can be stopped, and
returns its memory.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from forager.analytics.dataset import BY_NAME, Dataset, month_file
from forager.errors import error_text

# rows beyond the limit of memory are kept in files below the working folder
LIMITS = {
    "TimeZone": "UTC",
    "memory_limit": "2GB",
    "threads": 2,
    "temp_directory": ".duckdb",
    "autoinstall_known_extensions": False,
}


def main() -> None:
    connection = import_module("duckdb").connect()
    try:
        for name, value in LIMITS.items():
            connection.execute(f"SET {name} = {value!r}")
        command, arguments = orjson.loads(sys.stdin.buffer.read())
        answer = COMMANDS[command](connection, **arguments)
    except Exception as error:
        sys.exit(error_text(error)[:2000])
    finally:
        connection.close()
    sys.stdout.buffer.write(orjson.dumps(answer, default=float))


def query(connection: Any, sql: str) -> dict[str, Any]:
    """Columns and rows of a query over the files in the working folder."""
    found = connection.execute(sql)
    return {"columns": [column[0] for column in found.description], "rows": found.fetchall()}


def rewrite(connection: Any, files: dict[str, str]) -> dict[str, Any]:
    """Add the rows of a CSV file for each dataset; a row replaces the one with its key.

    Months that do not change are not written. Returns every month of every dataset with its
    number of rows, how many of them are new, and whether it was written.
    """
    return {name: _rewrite_dataset(connection, BY_NAME[name], csv) for name, csv in files.items()}


def _rewrite_dataset(connection: Any, dataset: Dataset, csv: str) -> dict[str, Any]:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE fresh AS {_rows_of_csv(dataset, csv)}")
    found = connection.execute("""SELECT DISTINCT strftime("at", '%Y-%m') FROM fresh""").fetchall()
    folder = Path(dataset.name)
    folder.mkdir(exist_ok=True)
    months = {month for (month,) in found}
    months |= {path.stem for path in folder.glob("*.parquet")}
    # the folders of an earlier version
    months |= {path.name.removeprefix("month=") for path in folder.glob("month=*")}
    return {month: _rewrite_month(connection, dataset, month) for month in sorted(months)}


def _rewrite_month(connection: Any, dataset: Dataset, month: str) -> dict[str, Any]:
    place = month_file(Path(), dataset.name, month)
    earlier = place.parent / f"month={month}"
    files = [place] * place.exists() + sorted(earlier.glob("*.parquet"))
    columns = ", ".join(f'"{name}"' for name in dataset.columns)
    fresh = f"""SELECT {columns} FROM fresh WHERE strftime("at", '%Y-%m') = '{month}'"""
    old = None
    before = 0
    if files:
        source = f"read_parquet({[str(file) for file in files]}, union_by_name = true)"
        (before,) = connection.execute(f"SELECT count(*) FROM {source}").fetchone()
        # columns that are newer than the files are NULL
        typed = "SELECT * FROM fresh WHERE false"
        old = f"SELECT {columns} FROM ({typed} UNION ALL BY NAME SELECT * FROM {source})"
        is_new = f"SELECT count(*) FROM ({fresh} EXCEPT {old})"
        if not earlier.exists() and connection.execute(is_new).fetchone() == (0,):
            return {"rows": before, "new": 0, "changed": False}
    rows = _write(connection, _merged(dataset, columns, fresh, old), place)
    if earlier.exists():
        shutil.rmtree(earlier)
    return {"rows": rows, "new": max(0, rows - before), "changed": True}


def _merged(dataset: Dataset, columns: str, fresh: str, old: str | None) -> str:
    """Rows of both; of several with one key the fresh one, or the newest."""
    both = f"SELECT *, 1 AS is_fresh FROM ({fresh})"
    if old is not None:
        both += f" UNION ALL SELECT *, 0 AS is_fresh FROM ({old})"
    key = ", ".join(f'"{name}"' for name in dataset.key)
    return f"""
        SELECT {columns} FROM ({both})
        QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY is_fresh DESC, "at" DESC) = 1
        ORDER BY "at", id
    """


def _write(connection: Any, sql: str, place: Path) -> int:
    """Write a file beside its place, and move it there once it is complete and on disk."""
    part = place.with_name(f".{place.name}.part")
    (rows,) = connection.execute(
        f"COPY ({sql}) TO '{part}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 100_000)"
    ).fetchone()
    _sync_to_disk(part)
    part.replace(place)
    for folder in (place.parent, Path(), Path("..")):
        _sync_to_disk(folder)
    return int(rows)


def _sync_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rows_of_csv(dataset: Dataset, csv: str) -> str:
    """CSV as PostgreSQL writes it: nothing is NULL, and "" is an empty text."""
    raw = {name: kind.csv_type for name, kind in dataset.columns.items()}
    values = ", ".join(
        f'make_timestamptz("{name}") AS "{name}"' if kind.is_time else f'"{name}"'
        for name, kind in dataset.columns.items()
    )
    return f"""
        SELECT {values} FROM read_csv(
            '{csv}', columns = {raw}, header = false, auto_detect = false, delim = ',',
            quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false)
    """


COMMANDS: dict[str, Callable[..., dict[str, Any]]] = {"query": query, "rewrite": rewrite}

if __name__ == "__main__":
    main()
