"""The engine as searches use it: queried for candidates, and not for a while after a failure."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from forager.db.database import Connection, Database
from forager.db.outages import Outage
from forager.index import store
from forager.index.kind import LAYOUT, EngineRefused, EngineUnavailable, IndexMissing, Kind
from forager.logs import get_logger
from forager.metrics.recorded import SEARCHES
from forager.outbox import store as outbox
from forager.outbox.store import delete_unsent
from forager.services.service import Service, in_chunks
from forager.settings import Search, Settings

if TYPE_CHECKING:
    from forager.index.client import EngineClient


log = get_logger("search")

# for all questions of a search together; less than PostgreSQL lets a transaction wait
ANSWER_LIMIT = 4.0
REST = 5.0
# of the numbers that PostgreSQL knows
LARGEST = 2**63 - 1
# all that is read of an answer; what would be empty is left out
ANSWER = "timed_out,_shards.failed,hits.hits.fields"

AWAY = "The search engine does not answer: PostgreSQL has answered instead."
REFUSED = "The search engine does not take this search: PostgreSQL has answered instead."
GONE = (
    "The search engine has lost the index: PostgreSQL has answered instead."
    " `forager search reindex` rebuilds it."
)


class Engine:
    """One engine of one process. A failure is logged once, however many searches meet it."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._outage = Outage(
            log, "the search engine does not answer, PostgreSQL does", said_every=math.inf
        )
        self._rests_until = 0.0

    @property
    def trouble(self) -> str | None:
        """What to say of it while it is not asked."""
        return AWAY if time.monotonic() < self._rests_until else None

    async def find(
        self, index: str, question: dict[str, Any], fields: Sequence[str], *, limit: float
    ) -> list[tuple[int, ...]]:
        try:
            if limit <= 0:
                raise EngineUnavailable("the search engine is too slow")
            answer = await self._client.ask(
                "POST", f"{index}/_search", question, limit=limit, filter_path=ANSWER
            )
            found = _numbers(answer, fields)
        except (EngineRefused, IndexMissing) as error:
            # it answers: others may ask for something else, or another index
            log.info("the search engine cannot answer a search", reason=error.message)
            raise
        except EngineUnavailable as error:
            self._fail(error)
            raise
        self._outage.over()
        return found

    def _fail(self, error: EngineUnavailable) -> None:
        self._outage.note(error)
        self._rests_until = time.monotonic() + REST


class Inquiry:
    """All that one search asks; how long it waits for answers is limited as a whole."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._left = ANSWER_LIMIT

    async def find(
        self, index: str, query: dict[str, Any], fields: Sequence[str], *, start: int, size: int
    ) -> list[tuple[int, ...]]:
        """The numbers in these fields of the best entries, in their order."""
        began = time.monotonic()
        try:
            question = _question(query, fields, start, size)
            return await self._engine.find(index, question, fields, limit=self._left)
        finally:
            self._left -= time.monotonic() - began


def note_of(error: EngineUnavailable) -> str:
    """The note for a caller that gets the answer of PostgreSQL because of this error."""
    if isinstance(error, IndexMissing):
        return GONE
    return REFUSED if isinstance(error, EngineRefused) else AWAY


def _question(
    query: dict[str, Any], fields: Sequence[str], start: int, size: int
) -> dict[str, Any]:
    return {
        "query": query,
        "from": start,
        "size": size,
        "_source": False,
        "stored_fields": "_none_",
        "docvalue_fields": list(fields),
        "track_total_hits": False,
    }


def _numbers(answer: dict[str, Any], fields: Sequence[str]) -> list[tuple[int, ...]]:
    try:
        if answer["timed_out"] or answer["_shards"]["failed"]:
            raise EngineUnavailable("the search engine has answered from a part of the index only")
        return [
            tuple(_number(hit["fields"][field][0]) for field in fields)
            for hit in answer.get("hits", {}).get("hits", ())
        ]
    except (KeyError, TypeError, IndexError, ArithmeticError, ValueError, AttributeError) as error:
        raise EngineUnavailable(f"the search engine answers strangely: {error!r}") from None


def _number(value: Any) -> int:
    number = int(value)
    if not 0 <= number <= LARGEST:
        raise ValueError("a number that no row has")
    return number


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine | None]:
    """The engine that the settings ask for; None for PostgreSQL alone."""
    if settings.search is not Search.OPENSEARCH:
        yield None
        return
    from forager.index.client import EngineClient

    assert settings.opensearch_url is not None
    async with EngineClient(settings.opensearch_url.get_secret_value()) as client:
        yield Engine(client)


# rows that PostgreSQL looks at beside the engine; with more, it does all
MAX_UNTOLD = 2_000

NOT_COMPLETE = (
    "The search index is not complete: PostgreSQL has answered instead."
    " `forager search reindex` completes it."
)
OTHER_LAYOUT = (
    "The search index was made by another version: PostgreSQL has answered instead."
    " `forager search reindex` rebuilds it."
)
BEHIND = "The search index has much to catch up with: PostgreSQL has answered instead."


@dataclass(frozen=True, slots=True)
class View:
    """An index to ask, and the rows that it may not know as they are."""

    engine: Inquiry
    index: str
    untold: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Who answers; a note if it is not who was asked for."""

    view: View | None = None
    note: str | None = None


async def choose(connection: Connection, engine: Engine | None, kind: str) -> Choice:
    """Decide before the query, so that the engine knows all later changes."""
    if engine is None:
        return Choice()
    if engine.trouble is not None:
        return Choice(note=engine.trouble)
    state = await store.select_index(connection, kind)
    if state is None or state.name is None or not state.is_complete:
        return Choice(note=NOT_COMPLETE)
    if state.layout != LAYOUT:
        return Choice(note=OTHER_LAYOUT)
    untold = await outbox.select_unsent(connection, kind, MAX_UNTOLD + 1)
    if len(untold) > MAX_UNTOLD:
        return Choice(note=BEHIND)
    return Choice(View(Inquiry(engine), state.name, tuple(set(untold))))


Answer = TypeVar("Answer")


async def answer(
    connection: Connection,
    engine: Engine | None,
    kind: str,
    search: Callable[[View | None], Awaitable[Answer]],
    *,
    is_last: bool,
) -> tuple[Answer, str | None]:
    """The answer of a search with the engine, or else PostgreSQL's and why.

    If the index is gone, another one may have taken its place: unless this attempt `is_last`, that
    is raised.
    """
    choice = await choose(connection, engine, kind)
    trouble = choice.note
    if choice.view is not None:
        try:
            answered = await search(choice.view)
            SEARCHES.add(kind, "opensearch")
            return answered, None
        except EngineUnavailable as error:
            if isinstance(error, IndexMissing) and not is_last:
                raise
            trouble = note_of(error)
    answered = await search(None)
    SEARCHES.add(kind, "postgres" if trouble is None else "fallback")
    return answered, trouble


CLEANUP_INTERVAL = 600.0
# other workers may have the engine configured: an index that none of them fed for this long
UNFED_FOR = 3600.0
CHUNK = 5_000
ORPHANED = "topic IN ('sections', 'products') AND topic NOT IN (SELECT kind FROM search_indexes)"


def index_service(
    database: Database, settings: Settings, kinds: Sequence[Kind], process_id: UUID | None = None
) -> Service:
    """The service that feeds the search engine; without an engine, its clean-up."""
    if settings.search is not Search.OPENSEARCH:
        step = partial(forget_unfed_indexes, database)
        return Service(name="search index cleanup", every=CLEANUP_INTERVAL, step=step)
    from forager.index.feeder import Feeder

    return Feeder.of(database, settings, kinds, process_id).service()


async def forget_unfed_indexes(database: Database, *, unfed_for: float = UNFED_FOR) -> int:
    """Delete indexes that no worker feeds, and their messages; return the number of messages."""
    async with database.connection() as connection:
        for kind in await store.delete_unfed(connection, unfed_for):
            log.info("search index forgotten: the search engine is switched off", kind=kind)
    return await in_chunks(database, delete_unsent, condition=ORPHANED, limit=CHUNK)
