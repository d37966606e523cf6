"""Search: ranked sections of the published generations for a query."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from forager.db.database import Connection, Database
from forager.documents.generation import Generation
from forager.documents.publication import missing_source, no_such_generation, publish_hint
from forager.documents.search import store
from forager.documents.search.embedding import Embedder, StaticModel
from forager.documents.search.hit import (
    MAX_HITS,
    SearchPage,
    SearchRequest,
    decode_cursor,
    encode_cursor,
)
from forager.documents.search.ranking import MOST, SOME, rank, rank_with_engine
from forager.documents.search.rerank import rerank
from forager.documents.search.scopes import (
    NamedTerms,
    RankedGenerations,
    names_in,
    scopes_of,
    without_names,
)
from forager.documents.search.score import Candidate
from forager.documents.search.semantic import (
    find_similar,
    fuse,
    is_question,
    meaning_weight,
    unembedded_note,
)
from forager.documents.search.snippets import by_page, facets_of, hits_of
from forager.documents.search.store import SearchedGeneration
from forager.documents.search.tsquery import MatchMode, Query, parse_query, suggest
from forager.documents.store import generations
from forager.documents.versions import select_versions
from forager.errors import InvalidInput
from forager.extract.languages import primary_language
from forager.extract.text import storable
from forager.index.engine import IndexView, SearchEngine, answer
from forager.index.kind import SECTIONS, IndexMissing

BY_WORDS = "Nothing is written as typed; these sections have the same words in a row."
BY_PREFIX = "Nothing is written as typed; these sections have words that begin so."
CORRECTED = "Nothing was found for {typed}. Showing results for {meant}."
EXCLUDED = 'Without {words}. To search for an option, quote it: "-{word}".'
NAMED = "No source is named {typed}; {meant} was assumed."
BY_STEM = "Nothing is written as typed; these sections have words with other endings."
ALSO_CORRECTED = "Few sections match. Also showing results for {meant}."
MOST_WORDS = "Some results do not have all of the words."
BY_MEANING = "Some results were found by meaning, without all of the words."
# queries of at least this many words also find sections with most of them
_LONG = 3
# with fewer pages, a word may be misspelled
_FEW = 3
# generations held back among which a search looks for sources that were never published
_MAX_HELD_BACK = 20


@dataclass(frozen=True, slots=True)
class _Found:
    """Ranked sections, and how they were found."""

    candidates: list[Candidate]
    scopes: Sequence[RankedGenerations]
    capped: bool = False
    note: str | None = None
    suggestion: str | None = None


async def search(
    database: Database,
    request: SearchRequest,
    engine: SearchEngine | None = None,
    embedder: Embedder | None = None,
) -> SearchPage:
    """Find sections. A page's cursor stays in the generations that its first page looked at.

    With an engine that cannot be used, PostgreSQL answers, and the page's note says so.
    """
    began = time.perf_counter()
    request = _checked(request)
    query = parse_query(request.query)
    if isinstance(embedder, StaticModel) and is_question(query):
        await embedder.load()  # not while a transaction waits
    try:
        page = await _read(database, request, query, engine, embedder, is_last=False)
    except IndexMissing:
        # only a later transaction can see the index that has taken its place
        page = await _read(database, request, query, engine, embedder, is_last=True)
    return replace(page, took=time.perf_counter() - began)


async def _read(
    database: Database,
    request: SearchRequest,
    query: Query,
    engine: SearchEngine | None,
    embedder: Embedder | None,
    *,
    is_last: bool,
) -> SearchPage:
    async with database.transaction() as connection:
        await store.begin_reading(connection)
        searched, offset = await _start(connection, request)

        async def search(view: IndexView | None) -> SearchPage:
            return await _search(connection, request, query, searched, offset, view, embedder)

        page, engine_note = await answer(connection, engine, SECTIONS, search, is_last=is_last)
    notes = [note for note in (page.note, engine_note) if note]
    return replace(page, note=" ".join(notes) or None)


async def _search(
    connection: Connection,
    request: SearchRequest,
    query: Query,
    searched: Sequence[SearchedGeneration],
    offset: int,
    view: IndexView | None,
    embedder: Embedder | None,
) -> SearchPage:
    finder = Finder(connection, request, searched, view)
    found = await finder.find(query)
    question = finder.without_names(query)
    if embedder is not None and found.scopes and is_question(question):
        similar = await find_similar(connection, request, found.scopes, embedder)
        weight = meaning_weight(question, found.scopes)
        fused = fuse(found.candidates, similar, weight)
        if similar and isinstance(embedder, StaticModel):
            fused = await rerank(fused, found.scopes, embedder)
        pending = await unembedded_note(connection, request, found.scopes, embedder)
        notes = [note for note in (found.note, pending) if note]
        found = replace(found, candidates=fused, note=" ".join(notes) or None)
    pages = by_page(found.candidates)
    end = offset + request.limit
    shown = [page[0] for page in pages[offset:end]]
    ids = tuple(generation.id for generation in searched)
    items = await hits_of(connection, pages[offset:end], ids)
    is_last = len(pages) <= end
    return SearchPage(
        items=items,
        total=len(pages),
        capped=found.capped,
        next_cursor=None if is_last else encode_cursor((ids, end), *_question(request)),
        offset=offset,
        took=0,
        note=await _with_unpublished(connection, request, _note(query, found, shown))
        if searched
        else await _nothing(connection, request),
        suggestion=found.suggestion,
        facets=facets_of(pages),
    )


class Finder:
    """Searches for the query as typed and, without results, for corrections of it.

    With an engine, its results are used; only if there are none, PostgreSQL searches.
    """

    def __init__(
        self,
        connection: Connection,
        request: SearchRequest,
        generations: Sequence[SearchedGeneration],
        view: IndexView | None,
    ) -> None:
        self._connection = connection
        self._request = request
        self._generations = generations
        self._view = view
        self._named = NamedTerms({})

    async def find(self, query: Query) -> _Found:
        """The best sections for a query, with remarks on what was searched instead."""
        self._named = await names_in(self._connection, query, self._generations)
        found = await self._find(query)
        notes = [NAMED.format(typed=t, meant=m) for t, m in self._named.corrected.items()]
        return replace(found, note=" ".join(filter(None, [*notes, found.note])) or None)

    def without_names(self, query: Query) -> Query:
        """The query without the names of sources in it."""
        return without_names(query, frozenset().union(*self._named.terms.values()))

    async def _find(self, query: Query) -> _Found:
        if self._view is not None and (found := await self._ask(query, self._view)).candidates:
            return found
        is_long = len([term for term in query.terms if not term.negated]) >= _LONG
        typed = await self._rank(query, share=MOST if is_long else 1.0)
        if not typed.scopes:
            return typed
        if typed.candidates:
            return await self._with_corrected(query, typed)
        for reading, note in ((MatchMode.WORDS, BY_WORDS), (MatchMode.PREFIX, BY_PREFIX)):
            found = await self._rank(query, reading)
            if found.candidates:
                return replace(found, note=note)
        corrected = await self._corrected(query)
        if corrected is not None and corrected.candidates:
            return corrected
        found = await self._rank(query, MatchMode.STEM)
        if found.candidates:
            return replace(found, note=BY_STEM)
        if corrected is None or corrected.suggestion is None:
            found = await self._rank(query, share=SOME)
            # of two identifiers, one may be written as words, and the other one nowhere
            return (
                found if found.candidates else await self._rank(query, MatchMode.WORDS, share=SOME)
            )
        # one misspelled word could be corrected, another one not
        found = await self._rank(parse_query(corrected.suggestion), share=SOME)
        return replace(found, note=corrected.note, suggestion=corrected.suggestion)

    async def _ask(self, query: Query, view: IndexView) -> _Found:
        """The results of the engine."""
        scopes = await scopes_of(
            self._connection,
            query,
            self._generations,
            MatchMode.TYPED,
            self._request.prefers,
            self._named,
        )
        if not scopes:
            return _Found([], scopes)
        found, capped = await rank_with_engine(self._connection, self._request, scopes, view)
        return _Found(found, scopes, capped)

    async def _rank(
        self, query: Query, reading: MatchMode = MatchMode.TYPED, *, share: float = 1.0
    ) -> _Found:
        scopes = await scopes_of(
            self._connection, query, self._generations, reading, self._request.prefers, self._named
        )
        found, capped = await rank(self._connection, self._request, scopes, share=share)
        return _Found(found, scopes, capped)

    async def _corrected(self, query: Query) -> _Found | None:
        """The results for the query with other words for those that no heading has."""
        text = self._request.query
        ids = [generation.id for generation in self._generations]
        meant = await suggest(self._connection, query, text, ids)
        if meant is None:
            return None
        found = await self._rank(parse_query(meant))
        note = CORRECTED.format(typed=text, meant=meant)
        return replace(found, note=note, suggestion=meant)

    async def _with_corrected(self, query: Query, typed: _Found) -> _Found:
        """Add results for a corrected query, if few texts and no headings match the typed one."""
        pages = {each.document_id for each in typed.candidates}
        if len(pages) >= _FEW or any(any(each.in_heading) for each in typed.candidates):
            return typed
        corrected = await self._corrected(query)
        if corrected is None or not corrected.candidates:
            return typed
        added = [each for each in corrected.candidates if each.document_id not in pages]
        meant = corrected.suggestion
        return replace(
            typed,
            candidates=[*typed.candidates, *added],
            note=ALSO_CORRECTED.format(meant=meant),
            suggestion=meant,
        )


def _checked(request: SearchRequest) -> SearchRequest:
    if not 1 <= request.limit <= MAX_HITS:
        raise InvalidInput(f"the limit must be 1 to {MAX_HITS}, not {request.limit}")
    path = storable(request.path or "")
    return replace(
        request,
        query=storable(request.query),
        language=None if request.language is None else primary_language(storable(request.language)),
        source=None if request.source is None else storable(request.source),
        version=None if request.version is None else storable(request.version),
        path=f"/{path.lstrip('/')}" if path.strip("/") else None,
    )


# --- the generations to search -----------------------------------------------------------------


async def _start(
    connection: Connection, request: SearchRequest
) -> tuple[Sequence[SearchedGeneration], int]:
    """The generations to search, and how many hits were shown before."""
    if request.cursor is not None:
        return await _continued(connection, request, request.cursor)
    if request.generation is not None:
        return await _one_generation(connection, request, request.generation), 0
    published = await store.select_published(connection, request.source, request.user_id)
    if not published and request.source is not None:
        await _must_exist(connection, request, request.source)
    if request.version is None:
        return published, 0
    chosen = select_versions([each.source_id for each in published], request.version)
    return [each for each in published if each.source_id in chosen], 0


async def _one_generation(
    connection: Connection, request: SearchRequest, number: int
) -> list[SearchedGeneration]:
    """An older generation can be searched for as long as it is kept."""
    if request.source is None:
        raise InvalidInput("a generation is searched together with its source", hint="Give both.")
    await _must_exist(connection, request, request.source)
    found = await generations.select_generation(connection, request.source, number)
    ids = [] if found is None else [found.id]
    searched = await store.select_once_published(connection, ids, request.source, request.user_id)
    if not searched:
        raise no_such_generation(request.source, number)
    return searched


async def _continued(
    connection: Connection, request: SearchRequest, cursor: str
) -> tuple[Sequence[SearchedGeneration], int]:
    ids, offset = decode_cursor(cursor, *_question(request))
    found = await store.select_once_published(connection, ids, request.source, request.user_id)
    if len(found) < len(ids):
        raise InvalidInput(
            "the generations of this search are gone", hint="Start again without a cursor."
        )
    return found, offset


async def _must_exist(connection: Connection, request: SearchRequest, source_id: str) -> None:
    if not await store.source_exists(connection, source_id, request.user_id):
        raise await missing_source(connection, source_id, request.user_id)


def _question(request: SearchRequest) -> tuple[str | None, ...]:
    filters = (request.source, request.path, request.language, request.kind)
    further = (request.generation, request.version)
    return request.query, *filters, *(str(each) for each in further if each is not None)


async def _nothing(connection: Connection, request: SearchRequest) -> str:
    """Why nothing is published that could be searched."""
    held_back = await _held_back(connection, request)
    if not held_back:
        return "Nothing has been published yet."
    return f"Nothing has been published yet: {_unpublished(held_back[0])}"


async def _with_unpublished(
    connection: Connection, request: SearchRequest, note: str | None
) -> str | None:
    """The note, and the newest source that is missing because it was never published."""
    if request.cursor is not None or request.generation is not None:
        return note
    first = [each for each in await _held_back(connection, request) if each.base_id is None]
    if not first:
        return note
    missing = f"{first[0].source_id} is not searched: {_unpublished(first[0])}"
    return f"{note} {missing}" if note else missing


async def _held_back(connection: Connection, request: SearchRequest) -> list[Generation]:
    return await generations.select_held_back(
        connection, source_id=request.source, user_id=request.user_id, limit=_MAX_HELD_BACK
    )


def _unpublished(generation: Generation) -> str:
    return (
        f"generation {generation.number} of {generation.source_id} is {generation.label}."
        f" {publish_hint(generation.source_id)}"
    )


def _note(query: Query, found: _Found, shown: Sequence[Candidate]) -> str | None:
    if not query.terms:
        return "No searchable words in the query."
    if not found.scopes:
        if all(term.negated for term in query.terms):
            return "The query has only words to exclude."
        return "No searchable words in the query: these are too common, or not words."
    notes = [found.note] if found.note else []
    if excluded := [term.text for term in query.terms if term.negated]:
        word = excluded[0]
        notes.append(EXCLUDED.format(words=", ".join(excluded), word=word))
    # with alternatives, one of them is enough
    partial = [] if len(query.alternatives) > 1 else [e for e in shown if not e.is_complete]
    if any(not each.is_similar for each in partial):
        notes.append(MOST_WORDS)
    if any(each.is_similar for each in partial):
        notes.append(BY_MEANING)
    if query.shortened:
        notes.append("Only the beginning of the query was used.")
    return " ".join(notes) or None
