"""Site crawls in the database, as their commits leave them."""

from __future__ import annotations

from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from forager.db.database import Database


async def add_job(database: Database, proxy: str | None = None) -> UUID:
    job = uuid4()
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO crawl_jobs (id, kind, payload) VALUES (%s, 'crawl', %s)",
            (job, Jsonb({"urls": ["https://docs.example/"], "proxy": proxy})),
        )
        await connection.execute("INSERT INTO crawl_states (job_id) VALUES (%s)", (job,))
    return job


async def settle(
    database: Database,
    job: UUID,
    first: int,
    count: int,
    *,
    ago: str = "1 hour",
    host: str = "docs.example",
) -> None:
    """Pages with these numbers, all in one commit so long ago."""
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO crawl_visited (job_id, url_hash, url, outcome, http_status, depth, via,
                                       attempts, content_type, size, duration_ms, settled_at)
            SELECT %(job)s, substring(sha256(n::text::bytea) FROM 1 FOR 16),
                   'https://' || %(host)s || '/' || n, 'fetched', 200, 1, 'link', n %% 2,
                   'text/html', 1000, 500, now() - %(ago)s::interval
              FROM generate_series(%(first)s::int, %(first)s::int + %(count)s::int - 1) AS n
            """,
            {"job": job, "host": host, "first": first, "count": count, "ago": ago},
        )
        await connection.execute(
            "UPDATE crawl_states SET updated_at = now() - %s::interval WHERE job_id = %s",
            (ago, job),
        )
