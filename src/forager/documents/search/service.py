"""Search: what was typed in, ranked sections of the published generations out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from forager.db.database import Connection, Database
from forager.documents import store as documents
from forager.documents.publication import no_such_generation, no_such_source
from forager.documents.search import cursor as cursors
from forager.documents.search import store
from forager.documents.search.hit import MAX_HITS, SearchPage, SearchRequest
from forager.documents.search.query import Kind, Query, parse_query
from forager.documents.search.ranking import rank
from forager.documents.search.scope import Scope, scopes_of
from forager.documents.search.showing import hits_of
from forager.documents.search.store import Ranked, SearchedGeneration
from forager.errors import InvalidInput
from forager.extract.text import storable
from forager.index.engine import Engine, View, choose, note_of
from forager.index.errors import EngineUnavailable, IndexMissing
from forager.index.kind import SECTIONS
from forager.metrics.recorded import SEARCHES

BY_WORDS = "Nothing is written as typed; these have the same words in a row."


@dataclass(frozen=True, slots=True)
class _Start:
    """The generations to look in, after which place, and how identifiers are looked for."""

    generations: Sequence[SearchedGeneration]
    after: cursors.Place = cursors.START
    as_typed: bool = True


async def search(
    database: Database, request: SearchRequest, engine: Engine | None = None
) -> SearchPage:
    """Find sections. A page's cursor stays in the generations that its first page looked at.

    With an engine that cannot be used, PostgreSQL answers, and the page's note says so.
    """
    began = time.perf_counter()
    request = _checked(request)
    query = parse_query(request.query)
    try:
        page = await _read(database, request, query, engine)
    except IndexMissing:
        # another one may have taken its place: only a later transaction can see that
        page = await _read(database, request, query, engine, again=True)
    return replace(page, took=time.perf_counter() - began)


async def _read(
    database: Database,
    request: SearchRequest,
    query: Query,
    engine: Engine | None,
    *,
    again: bool = False,
) -> SearchPage:
    async with database.transaction() as connection:
        await store.begin_reading(connection)
        start = await _start(connection, request)
        return await _by_engine(connection, request, query, start, engine, again=again)


async def _by_engine(
    connection: Connection,
    request: SearchRequest,
    query: Query,
    start: _Start,
    engine: Engine | None,
    *,
    again: bool,
) -> SearchPage:
    """The engine's answer, or PostgreSQL's if there is no engine or it does not answer."""
    choice = await choose(connection, engine, SECTIONS)
    trouble = choice.note
    if choice.view is not None:
        try:
            page = await _looked(connection, request, query, start, choice.view)
            SEARCHES.add(SECTIONS, "opensearch")
            return page
        except EngineUnavailable as error:
            if isinstance(error, IndexMissing) and not again:
                raise
            trouble = note_of(error)
    page = await _looked(connection, request, query, start, None)
    SEARCHES.add(SECTIONS, "postgres" if trouble is None else "fallback")
    notes = [note for note in (page.note, trouble) if note]
    return replace(page, note=" ".join(notes) or None)


async def _looked(
    connection: Connection,
    request: SearchRequest,
    query: Query,
    start: _Start,
    view: View | None,
) -> SearchPage:
    page = await _answer(connection, request, query, start, view)
    if page.hits or request.cursor is not None or not _has_identifiers(query):
        return page
    by_words = await _answer(connection, request, query, replace(start, as_typed=False), view)
    return replace(by_words, note=BY_WORDS) if by_words.hits else page


def _checked(request: SearchRequest) -> SearchRequest:
    if not 1 <= request.limit <= MAX_HITS:
        raise InvalidInput(f"the limit must be 1 to {MAX_HITS}, not {request.limit}")
    path = storable(request.path or "")
    return replace(
        request,
        query=storable(request.query),
        source=None if request.source is None else storable(request.source),
        path=f"/{path.lstrip('/')}" if path.strip("/") else None,
    )


def _has_identifiers(query: Query) -> bool:
    return any(term.kind is Kind.IDENTIFIER and not term.negated for term in query.terms)


# --- where -------------------------------------------------------------------------------------


async def _start(connection: Connection, request: SearchRequest) -> _Start:
    if request.cursor is not None:
        return await _go_on(connection, request, request.cursor)
    if request.generation is not None:
        return _Start(await _one_generation(connection, request, request.generation))
    published = await store.select_published(connection, request.source, request.user_id)
    if not published and request.source is not None:
        await _must_exist(connection, request, request.source)
    return _Start(published)


async def _one_generation(
    connection: Connection, request: SearchRequest, number: int
) -> list[SearchedGeneration]:
    """An older generation can be searched for as long as it is kept."""
    if request.source is None:
        raise InvalidInput("a generation is searched together with its source", hint="Give both.")
    await _must_exist(connection, request, request.source)
    found = await documents.select_generation(connection, request.source, number)
    ids = [] if found is None else [found.id]
    searched = await store.select_once_published(connection, ids, request.source, request.user_id)
    if not searched:
        raise no_such_generation(request.source, number)
    return searched


async def _go_on(connection: Connection, request: SearchRequest, text: str) -> _Start:
    cursor = cursors.decode(text, *_question(request))
    generations = await store.select_once_published(
        connection, cursor.generations, request.source, request.user_id
    )
    if len(generations) < len(cursor.generations):
        raise InvalidInput(
            "what this search was looking at is gone", hint="Start again without a cursor."
        )
    return _Start(generations, cursor.after, cursor.as_typed)


async def _must_exist(connection: Connection, request: SearchRequest, source_id: str) -> None:
    if not await store.source_exists(connection, source_id, request.user_id):
        raise no_such_source(source_id)


def _question(request: SearchRequest) -> tuple[str | None, ...]:
    generation = () if request.generation is None else (str(request.generation),)
    return request.query, request.source, request.path, *generation


# --- what --------------------------------------------------------------------------------------


async def _answer(
    connection: Connection,
    request: SearchRequest,
    query: Query,
    start: _Start,
    view: View | None,
) -> SearchPage:
    scopes = await scopes_of(connection, query, start.generations, as_typed=start.as_typed)
    ranked, capped = await rank(connection, request, scopes, start.after, view)
    shown = ranked[: request.limit]
    return SearchPage(
        hits=await hits_of(connection, query, scopes, shown),
        capped=capped,
        next_cursor=_next(request, start, shown[-1]) if len(ranked) > request.limit else None,
        took=0,
        note=_note(query, start.generations, scopes),
    )


def _next(request: SearchRequest, start: _Start, last: Ranked) -> str:
    cursor = cursors.SearchCursor(
        tuple(generation.id for generation in start.generations),
        (last.score, last.document_id, last.position),
        start.as_typed,
    )
    return cursors.encode(cursor, *_question(request))


def _note(
    query: Query, generations: Sequence[SearchedGeneration], scopes: Sequence[Scope]
) -> str | None:
    if not generations:
        return "Nothing has been published yet."
    if not query.terms:
        return "There is no word to look for."
    if not scopes:
        if all(term.negated for term in query.terms):
            return "There are only words to leave out, and none to look for."
        return "These words are too common to be looked for, or no words at all."
    return "Only the beginning of the query was used." if query.shortened else None
