"""The URLs of a job as lists: processed ones, filtered and sorted, and pending ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from forager.archive.options import archive_options
from forager.archive.reader import ArchivedResponse, read_response
from forager.crawl.settlement import Outcome, PendingUrl, SettledUrl, UrlSort
from forager.crawl.store import url_lists as store
from forager.db.cursor import (
    Page,
    check_limit,
    decode_values,
    encode_values,
    page_of,
    unknown_cursor,
)
from forager.db.database import Connection, Database
from forager.errors import NotAllowed, NotFound
from forager.extract.keys import url_key
from forager.extract.urls import Refusal, normalize
from forager.settings import Settings

# a job with more URLs is listed in the order of its index only
MAX_SORTED = 100_000
# URLs that are read for one page of a filtered list; the next page continues after them
MAX_SCANNED = 20_000
# folders and pages on one level of the tree
MAX_NODES = 500


_VALUES: dict[UrlSort, Callable[[SettledUrl], Any]] = {
    UrlSort.URL: lambda url: url.url,
    UrlSort.STATUS: lambda url: url.http_status or 0,
    UrlSort.DEPTH: lambda url: url.depth,
    UrlSort.SIZE: lambda url: url.size or 0,
    UrlSort.TIME: lambda url: url.settled_at.isoformat(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFilter:
    """Which processed URLs are listed; a field that is None selects all."""

    outcomes: Sequence[Outcome] = tuple(Outcome)
    reason: str | None = None
    http_status: int | None = None
    # a part of the URL
    text: str | None = None
    min_size: int | None = None
    since: datetime | None = None


async def list_settled(
    database: Database,
    job_id: UUID,
    wanted: UrlFilter = UrlFilter(),  # noqa: B008 - frozen
    *,
    sort: UrlSort | None = None,
    descending: bool = False,
    cursor: str | None = None,
    limit: int = 50,
) -> Page[SettledUrl]:
    """Processed URLs of a job, by default in the order of their keys, which has no meaning.

    A page of a filtered list may be short although `next_cursor` says that there are more.
    """
    check_limit(limit)
    after = _decode(cursor) if cursor else None
    async with database.connection() as connection:
        if sort is None:
            return await _in_key_order(connection, job_id, wanted, after, limit)
        if await count_to_sort(connection, job_id, wanted) > MAX_SORTED:
            raise NotAllowed(
                f"only lists of up to {MAX_SORTED:,} URLs can be sorted",
                hint="Leave out the order, or list failed URLs only.",
            )
        found = await store.select_sorted(
            connection, job_id, wanted, sort, descending=descending, after=after, limit=limit + 1
        )
    return page_of(found, limit, lambda url: _encode(_VALUES[sort](url), url.url_hash))


async def count_to_sort(connection: Connection, job_id: UUID, wanted: UrlFilter) -> int:
    """Number of rows that a sorted list reads; only failed URLs have an index."""
    settled, failed = await store.select_totals(connection, job_id)
    return failed if list(wanted.outcomes) == [Outcome.FAILED] else settled


async def count_by_outcome(
    database: Database, job_id: UUID, wanted: UrlFilter
) -> dict[Outcome, int] | None:
    """Matching URLs by outcome; None if the crawl has too many to count."""
    if not await can_sort(database, job_id, wanted):
        return None
    found = await database.run(store.count_by_outcome, job_id, wanted)
    return {outcome: found.get(outcome, 0) for outcome in Outcome}


async def can_sort(database: Database, job_id: UUID, wanted: UrlFilter) -> bool:
    """Whether the list is short enough to be sorted."""
    return await database.run(count_to_sort, job_id, wanted) <= MAX_SORTED


async def _in_key_order(
    connection: Connection, job_id: UUID, wanted: UrlFilter, after: Any, limit: int
) -> Page[SettledUrl]:
    start = b"" if after is None else after[1]
    found = await store.select_in_key_order(
        connection, job_id, wanted, after=start, scan=MAX_SCANNED, limit=limit + 1
    )
    if len(found) > limit:
        return Page(found[:limit], _encode(None, found[limit - 1].url_hash))
    scanned_to = await store.select_key_after(
        connection, job_id, wanted, after=start, count=MAX_SCANNED
    )
    return Page(found, None if scanned_to is None else _encode(None, scanned_to))


async def list_pending(
    database: Database, job_id: UUID, *, cursor: str | None = None, limit: int = 50
) -> Page[PendingUrl]:
    """URLs that a job has yet to fetch, in the order of their discovery within each depth."""
    check_limit(limit)
    after = (-1, 0)
    if cursor:
        try:
            depth, seq = map(int, cursor.split("-"))
        except ValueError:
            raise unknown_cursor() from None
        if not (0 <= depth < 2**15 and 0 <= seq < 2**63):
            raise unknown_cursor()
        after = (depth, seq)
    found = await database.run(store.select_pending, job_id, after=after, limit=limit + 1)
    return page_of(found, limit, lambda url: f"{url.depth}-{url.seq}")


@dataclass(frozen=True, slots=True)
class PathNode:
    """A folder (its name ends with a slash) or a page below a prefix."""

    url: str
    name: str
    urls: dict[Outcome, int]

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")

    @property
    def total(self) -> int:
        return sum(self.urls.values())


@dataclass(frozen=True, slots=True)
class PathTree:
    """One level of the tree of a job's URLs. `estimated`: only a sample was counted."""

    prefix: str
    nodes: list[PathNode]
    estimated: bool
    is_cut: bool


async def path_tree(database: Database, job_id: UUID, prefix: str = "") -> PathTree:
    """The next level below a URL that ends with a slash; without one, the first level.

    The first level is that of the sites; if there is only one, it is that site's first level.
    """
    async with database.connection() as connection:
        settled, _ = await store.select_totals(connection, job_id)
        rows = await store.count_paths(
            connection, job_id, prefix, sample=MAX_SORTED, limit=MAX_NODES + 1
        )
    weight = max(1.0, settled / MAX_SORTED)
    nodes: dict[str, PathNode] = {}
    for part, outcome, urls in rows:
        node = nodes.setdefault(part or "", PathNode(prefix + (part or ""), part or "", {}))
        node.urls[Outcome(outcome)] = round(urls * weight)
    if not prefix and len(nodes) == 1 and (root := next(iter(nodes))):
        return await path_tree(database, job_id, root)
    shown = list(nodes.values())[:MAX_NODES]
    return PathTree(prefix, shown, weight > 1, len(nodes) > MAX_NODES)


async def read_response_of(
    database: Database, settings: Settings, job_id: UUID, url: str
) -> ArchivedResponse:
    """The archived response of a URL that a job has processed."""
    normalized = normalize(url)
    ref = None
    if not isinstance(normalized, Refusal):
        ref = await database.run(store.select_response, job_id, url_key(normalized))
    if ref is None:
        raise NotFound(f"job {job_id} has no archived response of {url}")
    return await read_response(archive_options(settings).open(), ref)


def _encode(value: Any, key: bytes) -> str:
    return encode_values(value, key.hex())


def _decode(cursor: str) -> tuple[Any, bytes]:
    try:
        value, key = decode_values(cursor)
        return value, bytes.fromhex(key)
    except (ValueError, TypeError):
        raise unknown_cursor() from None
