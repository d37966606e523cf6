"""Search: what was typed in, ranked sections of the published generations out.

Headings are ranked first, and texts only when headings do not fill the page. Both tiers stop at a
number of matches, so that common words are answered as quickly as rare ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from forager.db.database import Connection, Database
from forager.documents.publication import no_such_source
from forager.documents.search import cursor as cursors
from forager.documents.search import store
from forager.documents.search.hit import MAX_HITS, Hit, SearchPage, SearchRequest
from forager.documents.search.plain import one_line
from forager.documents.search.query import Kind, Query, parse_query
from forager.documents.search.snippets import HEADLINE_OPTIONS, make_snippet, text_to_mark
from forager.documents.search.store import FoundSection, Ranked, SearchedGeneration, Tier
from forager.documents.search.tsquery import TsQuery, build
from forager.errors import InvalidInput
from forager.extract.text import storable

HEADINGS_CAP = 5_000
TEXTS_CAP = 2_000
# more sources than this are told apart by the manifest alone
MAX_MARKS = 8
# headings score from 1 to 2, texts from 0 to 1
_HEADINGS = 1.0
# a lexeme is at least so long before its end may be inflected away
_HINT = 4


@dataclass(frozen=True, slots=True)
class _Scope:
    """Generations whose sources are indexed under one configuration, and the query under it."""

    config: str
    generations: Sequence[SearchedGeneration]
    query: TsQuery


async def search(database: Database, request: SearchRequest) -> SearchPage:
    """Find sections. A page's cursor stays in the generations that its first page looked at."""
    began = time.perf_counter()
    request = _checked(request)
    query = parse_query(request.query)
    async with database.connection() as connection:
        generations, after = await _where(connection, request)
        page = await _answer(connection, request, query, generations, after)
    return replace(page, took=time.perf_counter() - began)


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


async def _where(
    connection: Connection, request: SearchRequest
) -> tuple[list[SearchedGeneration], cursors.Place]:
    """The generations to look in, and after which place."""
    if request.cursor is not None:
        cursor = cursors.decode(request.cursor, *_question(request))
        generations = await store.select_once_published(
            connection, cursor.generations, request.source, request.user_id
        )
        if len(generations) < len(cursor.generations):
            raise InvalidInput(
                "what this search was looking at is gone", hint="Start again without a cursor."
            )
        return generations, cursor.after
    published = await store.select_published(connection, request.source, request.user_id)
    if not published and request.source is not None:
        await _must_exist(connection, request.source, request)
    return published, cursors.START


async def _must_exist(connection: Connection, source_id: str, request: SearchRequest) -> None:
    if not await store.source_exists(connection, source_id, request.user_id):
        raise no_such_source(source_id)


def _question(request: SearchRequest) -> tuple[str | None, ...]:
    return request.query, request.source, request.path


async def _answer(
    connection: Connection,
    request: SearchRequest,
    query: Query,
    generations: Sequence[SearchedGeneration],
    after: cursors.Place,
) -> SearchPage:
    scopes = await _scopes(connection, query, generations)
    note = _note(query, generations, scopes)
    if not scopes:
        return SearchPage(hits=[], capped=False, next_cursor=None, took=0, note=note)
    ranked, capped = await _rank(connection, request, scopes, after)
    shown = ranked[: request.limit]
    next_cursor = None
    if len(ranked) > request.limit:
        last = shown[-1]
        place = (last.score, last.document_id, last.position)
        ids = tuple(generation.id for generation in generations)
        next_cursor = cursors.encode(cursors.SearchCursor(ids, place), *_question(request))
    hits = await _hits(connection, query, scopes, shown)
    return SearchPage(hits=hits, capped=capped, next_cursor=next_cursor, took=0, note=note)


async def _scopes(
    connection: Connection, query: Query, generations: Sequence[SearchedGeneration]
) -> list[_Scope]:
    """The query under each configuration that it means something under."""
    by_config: dict[str, list[SearchedGeneration]] = {}
    for generation in generations:
        by_config.setdefault(generation.config, []).append(generation)
    texts = [term.text for term in query.terms]
    if not texts or not by_config:
        return []
    words = await store.select_term_queries(connection, list(by_config), texts)
    scopes = [
        _Scope(config, members, build(query, words[config]))
        for config, members in by_config.items()
    ]
    return [scope for scope in scopes if scope.query.match]


def _note(
    query: Query, generations: Sequence[SearchedGeneration], scopes: Sequence[_Scope]
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


# --- ranking -----------------------------------------------------------------------------------


async def _rank(
    connection: Connection,
    request: SearchRequest,
    scopes: Sequence[_Scope],
    after: cursors.Place,
) -> tuple[list[Ranked], bool]:
    """The best sections after a place, one more than asked for if there are; whether capped."""
    wanted = request.limit + 1
    found: list[Ranked] = []
    capped = False
    marked = request.source is not None or request.user_id is not None or len(scopes) > 1
    tiers = [_tier(scope, request, after, wanted, marked=marked) for scope in scopes]
    if after[0] >= _HEADINGS:
        for tier in tiers:
            hits = await store.select_heading_hits(connection, replace(tier, cap=HEADINGS_CAP))
            capped |= _is_full(hits, HEADINGS_CAP)
            found += hits
    if len(found) < wanted:
        for tier in tiers:
            hits = await store.select_text_hits(connection, tier)
            capped |= _is_full(hits, TEXTS_CAP)
            found += hits
    found.sort(key=lambda hit: (-hit.score, hit.document_id, hit.position))
    return found[:wanted], capped


def _tier(
    scope: _Scope, request: SearchRequest, after: cursors.Place, wanted: int, *, marked: bool
) -> Tier:
    numbers = [generation.source_number for generation in scope.generations]
    query = scope.query
    return Tier(
        match=query.within(numbers) if marked and len(numbers) <= MAX_MARKS else query.match,
        rank=query.match,
        generations=[generation.id for generation in scope.generations],
        path=request.path,
        cap=TEXTS_CAP,
        after=after,
        limit=wanted,
    )


def _is_full(hits: Sequence[Ranked], cap: int) -> bool:
    return bool(hits) and hits[0].live >= cap


# --- what is shown -----------------------------------------------------------------------------


async def _hits(
    connection: Connection, query: Query, scopes: Sequence[_Scope], ranked: Sequence[Ranked]
) -> list[Hit]:
    keys = [(hit.document_id, hit.position) for hit in ranked]
    sections = await store.select_sections(connection, keys) if keys else {}
    # one that was deleted in this very moment is not shown
    found = [(hit, sections[key]) for hit, key in zip(ranked, keys, strict=True) if key in sections]
    scope_of = {generation.source_id: scope for scope in scopes for generation in scope.generations}
    used = [scope_of[section.source_id] for _, section in found]
    names = [t.text for t in query.terms if t.kind is Kind.IDENTIFIER and not t.negated]
    marked = await store.mark_matches(
        connection,
        [
            text_to_mark(section.content, _hints(scope.query, names))
            for (_, section), scope in zip(found, used, strict=True)
        ],
        [scope.config for scope in used],
        [scope.query.positive for scope in used],
        HEADLINE_OPTIONS,
    )
    return [
        _hit(hit, section, text, names) for (hit, section), text in zip(found, marked, strict=True)
    ]


def _hints(query: TsQuery, names: Sequence[str]) -> list[str]:
    """How what matched is likely to begin."""
    return [*names, *(lexeme[: max(_HINT, len(lexeme) - 1)] for lexeme in query.lexemes)]


def _hit(hit: Ranked, section: FoundSection, marked: str, names: Sequence[str]) -> Hit:
    snippet = make_snippet(marked, names)
    anchor = f"#{quote(section.anchor, safe=_ANCHOR)}" if section.anchor else ""
    return Hit(
        url=f"{section.url}{anchor}",
        title=one_line(section.title or ""),
        heading=one_line(section.heading),
        snippet=snippet.text,
        highlights=snippet.highlights,
        score=round(hit.score, 6),
        source_id=section.source_id,
        document_id=section.document_id,
        section_id=section.section_id,
    )


# what a fragment may hold as it is (RFC 3986); a page may already have escaped the rest
_ANCHOR = "!$&'()*+,;=:@/?%-._~"
