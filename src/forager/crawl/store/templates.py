"""SQL of crawl templates."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from forager.crawl.options import CrawlTemplate
from forager.db.database import Connection
from forager.db.rows import Rows, Values


async def upsert_template(
    connection: Connection, owner: UUID | None, name: str, options: dict[str, Any]
) -> None:
    await connection.execute(
        """
        INSERT INTO crawl_templates (user_id, name, options)
        VALUES (%s, %s, %s)
            ON CONFLICT (name, user_id)
            DO UPDATE SET options = excluded.options, updated_at = now()
        """,
        (owner, name, Jsonb(options)),
    )


async def count_templates(connection: Connection, owner: UUID | None) -> int:
    return await Values(connection, int).one(
        "SELECT count(*) FROM crawl_templates WHERE user_id IS NOT DISTINCT FROM %s", (owner,)
    )


async def select_templates(
    connection: Connection,
    *,
    owner: UUID | None,
    sees_only: UUID | None,
    limit: int,
    name: str | None = None,
    after: str | None = None,
) -> list[CrawlTemplate]:
    """Templates by name, of one owner or of all; of several with one name, the owner's first."""
    return await Rows(connection, CrawlTemplate).all(
        """
        SELECT DISTINCT ON (name) id, name, options, created_at, updated_at
          FROM crawl_templates
         WHERE (%(sees_only)s::uuid IS NULL OR user_id = %(sees_only)s)
           AND (%(name)s::text IS NULL OR name = %(name)s)
           AND (%(after)s::text IS NULL OR name > %(after)s)
         ORDER BY name, user_id IS NOT DISTINCT FROM %(owner)s::uuid DESC, id
         LIMIT %(limit)s
        """,
        {"owner": owner, "sees_only": sees_only, "name": name, "after": after, "limit": limit},
    )


async def select_names(connection: Connection, *, sees_only: UUID | None, limit: int) -> list[str]:
    """The names of templates, of one owner or of all."""
    return await Values(connection).all(
        """
        SELECT DISTINCT name FROM crawl_templates
         WHERE (%(sees_only)s::uuid IS NULL OR user_id = %(sees_only)s)
         ORDER BY name
         LIMIT %(limit)s
        """,
        {"sees_only": sees_only, "limit": limit},
    )


async def delete_template(connection: Connection, template_id: int) -> None:
    await connection.execute("DELETE FROM crawl_templates WHERE id = %s", (template_id,))
