"""Tasks in any state, made without a worker."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from forager.db.database import Database


async def make_domain(database: Database, name: str, **columns: Any) -> int:
    """A domain whose next slot is free."""
    values = {"domain_name": name, "base_url": f"https://{name}/", **columns}
    return await _insert(database, "domains", values)


async def make_task(database: Database, domain_id: int, number: int = 0, **columns: Any) -> int:
    """A pending task; times are given as seconds from now, in columns that end in `_in`."""
    url = f"https://shop.example/{domain_id}/{number or uuid4().hex}"
    values: dict[str, Any] = {"domain_id": domain_id, "url": url, **columns}
    if values.get("status") in ("crawling", "parsing"):
        values.setdefault("worker_id", uuid4())
    return await _insert(database, "crawl_tasks", values)


async def _insert(database: Database, table: str, values: dict[str, Any]) -> int:
    columns, places = [], []
    for name, value in values.items():
        is_time = name.endswith("_in")
        columns.append(name.removesuffix("_in") + "_at" if is_time else name)
        places.append("now() + %s * interval '1 second'" if is_time else "%s")
        values[name] = value
    if table == "crawl_tasks":
        columns.append("url_hash")
        places.append("sha256(%s::bytea)")
        values = {**values, "url_hash": values["url"]}
    async with database.connection() as connection:
        cursor = await connection.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(places)}) RETURNING id",
            list(values.values()),
        )
        row = await cursor.fetchone()
    assert row is not None
    return int(row[0])


async def statuses(database: Database) -> dict[int, str]:
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT id, status FROM crawl_tasks ORDER BY id")
        return {row[0]: row[1] for row in await cursor.fetchall()}


async def in_state(database: Database, status: str) -> list[int]:
    return [task for task, found in (await statuses(database)).items() if found == status]
