"""SQL that compares the pages of two generations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from forager.db.database import Connection
from forager.db.rows import Rows, Tuples, Values


@dataclass(frozen=True, slots=True)
class PageDifference:
    """A page that two generations do not list with the same content."""

    url: str
    title: str | None
    old_url: str | None
    old_id: int | None
    new_id: int | None
    old_hash: bytes
    new_hash: bytes


_PAGES: LiteralString = """
    SELECT coalesce(new.url, old.url) AS url, coalesce(new.title, old.title) AS title,
           old.url AS old_url, old.id AS old_id, new.id AS new_id,
           old.content_hash AS old_hash, new.content_hash AS new_hash
"""
# all pages, or those with one of these URLs or paths
_DIFFER: LiteralString = """
       old.content_hash IS DISTINCT FROM new.content_hash
       AND (%(names)s::text[] = '{}' OR old.url = ANY(%(names)s) OR new.url = ANY(%(names)s)
            OR old.path = ANY(%(names)s) OR new.path = ANY(%(names)s))
     LIMIT %(limit)s
"""


async def select_differences(
    connection: Connection, old_id: int, new_id: int, names: Sequence[str] = (), *, limit: int
) -> list[PageDifference]:
    """URLs whose content differs between two generations of a source."""
    return await Rows(connection, PageDifference).all(
        f"""
        {_PAGES}
          FROM (SELECT url_hash, document_id FROM generation_documents
                 WHERE generation_id = %(old)s) a
          FULL JOIN
               (SELECT url_hash, document_id FROM generation_documents
                 WHERE generation_id = %(new)s) b
            ON b.url_hash = a.url_hash
          LEFT JOIN documents old ON old.id = a.document_id
          LEFT JOIN documents new ON new.id = b.document_id
         WHERE a.document_id IS DISTINCT FROM b.document_id
           AND {_DIFFER}
        """,
        {"old": old_id, "new": new_id, "names": list(names), "limit": limit},
    )


_BELOW_ROOT: LiteralString = """
    SELECT d.id, d.url, d.path, d.title, d.content_hash,
           CASE WHEN starts_with(d.url, {root}) THEN substr(d.url, length({root}) + 1)
                ELSE d.url END AS name
      FROM generation_documents m
      JOIN documents d ON d.id = m.document_id
"""


async def select_differences_of_sources(
    connection: Connection,
    old_id: int,
    new_id: int,
    roots: tuple[str, str],
    names: Sequence[str] = (),
    *,
    limit: int,
) -> list[PageDifference]:
    """Pages whose content differs between generations of two sources, in the order of their URLs.

    They are matched by their URLs without the roots.
    """
    old: LiteralString = _BELOW_ROOT.replace("{root}", "%(old_root)s")
    new: LiteralString = _BELOW_ROOT.replace("{root}", "%(new_root)s")
    return await Rows(connection, PageDifference).all(
        f"""
        {_PAGES}
          FROM ({old} WHERE m.generation_id = %(old)s) old
          FULL JOIN ({new} WHERE m.generation_id = %(new)s) new ON new.name = old.name
         WHERE {_DIFFER.replace("LIMIT", "ORDER BY url LIMIT")}
        """,
        {
            "old": old_id, "new": new_id, "old_root": roots[0], "new_root": roots[1],
            "names": list(names), "limit": limit,
        },
    )  # fmt: skip


async def select_urls(connection: Connection, generation_id: int, *, limit: int) -> list[str]:
    """URLs of a generation by their last step, so that those of two generations overlap."""
    return await Values(connection).all(
        """
        SELECT d.url
          FROM generation_documents m
          JOIN documents d ON d.id = m.document_id
         WHERE m.generation_id = %s
         ORDER BY substring(d.url FROM '[^/]*$'), d.url
         LIMIT %s
        """,
        (generation_id, limit),
    )


async def generations_list_any(
    connection: Connection, generation_ids: Sequence[int], names: Sequence[str]
) -> bool:
    """Whether one of these generations lists a page with one of these URLs or paths."""
    return await Tuples(connection).exists(
        """
        SELECT
          FROM generation_documents m
          JOIN documents d ON d.id = m.document_id
         WHERE m.generation_id = ANY(%(generations)s)
           AND (d.url = ANY(%(names)s) OR d.path = ANY(%(names)s))
        """,
        {"generations": list(generation_ids), "names": list(names)},
    )
