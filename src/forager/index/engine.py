"""The engine in searches: it ranks, and is bypassed for a while after a failure."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from forager.db.cursor import LARGEST_ID
from forager.db.database import Connection, Database
from forager.db.outages import Outage
from forager.db.retention import delete_rows
from forager.errors import error_text
from forager.index import store
from forager.index.kind import LAYOUT, EngineRefused, EngineUnavailable, IndexKind, IndexMissing
from forager.logs import get_logger
from forager.metrics.catalog import SEARCHES
from forager.outbox.service import unsent
from forager.services.service import Service, in_chunks
from forager.settings import Search, Settings

if TYPE_CHECKING:
    from forager.index.client import EngineClient


log = get_logger("search")

# seconds for all requests of a search together; less than PostgreSQL lets a transaction wait
ANSWER_LIMIT = 4.0
COOLDOWN = 5.0
# everything that is read of a response; members that would be empty are left out
RESPONSE_FIELDS = "timed_out,_shards.failed,hits.hits.sort"

UNAVAILABLE = "The search engine does not answer: PostgreSQL has answered instead."
REFUSED = "The search engine does not take this search: PostgreSQL has answered instead."
LOST = (
    "The search engine has lost the index: PostgreSQL has answered instead."
    " `forager search reindex` rebuilds it."
)


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that was found."""

    score: float
    ids: tuple[int, ...]


class SearchEngine:
    """One engine of one process. A failure is logged once, however many searches meet it."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._outage = Outage(
            log, "the search engine does not answer, PostgreSQL does", said_every=math.inf
        )
        self._cooldown_until = 0.0

    @property
    def note(self) -> str | None:
        """Why searches bypass the engine, if they do."""
        return UNAVAILABLE if time.monotonic() < self._cooldown_until else None

    async def search(self, index: str, body: dict[str, Any], *, limit: float) -> list[Found]:
        """The best entries of an index for a query.

        Raises EngineUnavailable, EngineRefused or IndexMissing: PostgreSQL answers then.
        """
        try:
            if limit <= 0:
                raise EngineUnavailable("the search engine is too slow")
            response = await self._client.request(
                "POST", f"{index}/_search", body, limit=limit, filter_path=RESPONSE_FIELDS
            )
            found = _found(response)
        except (EngineRefused, IndexMissing) as error:
            # the engine is reachable: other searches may work
            log.info("the search engine cannot answer a search", reason=error.message)
            raise
        except EngineUnavailable as error:
            self._outage.note(error)
            self._cooldown_until = time.monotonic() + COOLDOWN
            raise
        self._outage.over()
        return found


@dataclass(slots=True)
class IndexView:
    """An index for one search."""

    engine: SearchEngine
    index: str
    # the time that is left for requests
    seconds: float = ANSWER_LIMIT

    async def find(
        self,
        query: dict[str, Any],
        fields: Sequence[str],
        *,
        size: int,
        after: Found | None = None,
        newest_first: bool = False,
    ) -> list[Found]:
        """The best entries after one: their scores, and the numbers in these fields.

        Entries with the same score are in the order of these fields.
        """
        began = time.monotonic()
        order = "desc" if newest_first else "asc"
        body = {
            "query": query,
            "size": size,
            "_source": False,
            "track_total_hits": False,
            "sort": [{"_score": "desc"}, *({field: order} for field in fields)],
            **({} if after is None else {"search_after": [after.score, *after.ids]}),
        }
        try:
            return await self.engine.search(self.index, body, limit=self.seconds)
        finally:
            self.seconds -= time.monotonic() - began


def note_of(error: EngineUnavailable) -> str:
    """The note for a caller who gets the answer of PostgreSQL because of this error."""
    if isinstance(error, IndexMissing):
        return LOST
    return REFUSED if isinstance(error, EngineRefused) else UNAVAILABLE


def _found(response: dict[str, Any]) -> list[Found]:
    try:
        if response["timed_out"] or response["_shards"]["failed"]:
            raise EngineUnavailable("the search engine has answered from a part of the index only")
        hits = response.get("hits", {}).get("hits", ())
        return [_entry(*hit["sort"]) for hit in hits]
    except (KeyError, TypeError, IndexError, ArithmeticError, ValueError, AttributeError) as error:
        raise EngineUnavailable(
            f"the search engine answers strangely: {error_text(error)}"
        ) from None


def _entry(score: Any, *ids: Any) -> Found:
    score = float(score)
    if not math.isfinite(score):
        raise ValueError("a score that is no number")
    return Found(score, tuple(map(_number, ids)))


def _number(value: Any) -> int:
    number = int(value)
    if not 0 <= number <= LARGEST_ID:
        raise ValueError("a number that no row has")
    return number


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[SearchEngine | None]:
    """The configured engine; None for PostgreSQL alone."""
    if settings.search is Search.POSTGRES:
        yield None
        return
    from forager.index.client import EngineClient

    async with EngineClient.of(settings) as client:
        yield SearchEngine(client)


NOT_COMPLETE = (
    "The search index is not complete: PostgreSQL has answered instead."
    " `forager search reindex` completes it."
)
OTHER_LAYOUT = (
    "The search index was made by another version: PostgreSQL has answered instead."
    " `forager search reindex` rebuilds it."
)


async def choose(
    connection: Connection, engine: SearchEngine | None, kind: str
) -> IndexView | str | None:
    """The index that answers, or a note why PostgreSQL does; None without an engine."""
    if engine is None:
        return None
    if engine.note is not None:
        return engine.note
    state = await store.select_index(connection, kind)
    if state is None or state.name is None or not state.is_complete:
        return NOT_COMPLETE
    if state.layout != LAYOUT:
        return OTHER_LAYOUT
    return IndexView(engine, state.name)


Answer = TypeVar("Answer")


async def answer(
    connection: Connection,
    engine: SearchEngine | None,
    kind: str,
    search: Callable[[IndexView | None], Awaitable[Answer]],
    *,
    is_last: bool,
) -> tuple[Answer, str | None]:
    """The answer of a search with the engine, or else PostgreSQL's with a note that says why.

    If the index is gone, another one may have replaced it: IndexMissing is raised, unless this
    attempt `is_last`.
    """
    chosen = await choose(connection, engine, kind)
    if isinstance(chosen, IndexView):
        try:
            answered = await search(chosen)
            SEARCHES.add(kind, "engine")
            return answered, None
        except EngineUnavailable as error:
            if isinstance(error, IndexMissing) and not is_last:
                raise
            chosen = note_of(error)
    answered = await search(None)
    SEARCHES.add(kind, "postgres" if chosen is None else "fallback")
    return answered, chosen


CLEANUP_INTERVAL = 600.0
# other workers may have the engine configured: an index that none of them has fed for this long
# is forgotten
UNFED_FOR = 3600.0
CHUNK = 5_000
ORPHANED = unsent(
    "topic IN ('sections', 'products') AND topic NOT IN (SELECT kind FROM search_indexes)"
)


def index_service(
    database: Database,
    settings: Settings,
    kinds: Sequence[IndexKind],
    process_id: UUID | None = None,
) -> Service:
    """The service that feeds the search engine; without an engine, its clean-up."""
    if settings.search is Search.POSTGRES:
        step = partial(forget_unfed_indexes, database)
        return Service(name="search index cleanup", every=CLEANUP_INTERVAL, step=step)
    from forager.index.client import EngineClient
    from forager.index.feeder import Feeder

    client = EngineClient.of(settings)
    return Feeder(database, client, settings.opensearch_prefix, kinds, process_id).service()


async def forget_unfed_indexes(database: Database, *, unfed_for: float = UNFED_FOR) -> int:
    """Delete indexes that no worker feeds, and their messages; return the number of messages."""
    async with database.connection() as connection:
        for kind in await store.delete_unfed(connection, unfed_for):
            log.info("search index forgotten: the search engine is switched off", kind=kind)
    return await in_chunks(database, delete_rows, rows=ORPHANED, limit=CHUNK)
