"""Ranking in two tiers: headings first, texts only when headings do not fill the page.

Both tiers stop at a number of matches that readers can see, so that common words are answered
nearly as quickly as rare ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from forager.db.database import Connection
from forager.documents.search import store
from forager.documents.search.cursor import Place
from forager.documents.search.hit import SearchRequest
from forager.documents.search.query import Query
from forager.documents.search.store import Ranked, SearchedGeneration, Tier
from forager.documents.search.tsquery import TsQuery, build

HEADINGS_CAP = 1_000
TEXTS_CAP = 1_000
# more sources than this are told apart by the manifest alone
MAX_MARKS = 8
# headings score from 1 to 2, texts from 0 to 1
_HEADINGS = 1.0


@dataclass(frozen=True, slots=True)
class Scope:
    """Generations whose sources are indexed under one configuration, and the query under it."""

    config: str
    generations: Sequence[SearchedGeneration]
    query: TsQuery


async def scopes_of(
    connection: Connection,
    query: Query,
    generations: Sequence[SearchedGeneration],
    *,
    as_typed: bool,
) -> list[Scope]:
    """The query under each configuration that it means something under."""
    by_config: dict[str, list[SearchedGeneration]] = {}
    for generation in generations:
        by_config.setdefault(generation.config, []).append(generation)
    texts = [term.text for term in query.terms]
    if not texts or not by_config:
        return []
    words = await store.select_term_queries(connection, list(by_config), texts)
    scopes = [
        Scope(config, members, build(query, words[config], as_typed=as_typed))
        for config, members in by_config.items()
    ]
    return [scope for scope in scopes if scope.query.match]


async def rank(
    connection: Connection, request: SearchRequest, scopes: Sequence[Scope], after: Place
) -> tuple[list[Ranked], bool]:
    """The best sections after a place, one more than asked for if there are; whether capped."""
    wanted = request.limit + 1
    found: list[Ranked] = []
    capped = False
    tiers = _tiers(request, scopes, after, wanted)
    if after[0] >= _HEADINGS:
        for tier in tiers:
            hits = await store.select_heading_hits(connection, replace(tier, cap=HEADINGS_CAP))
            capped |= _is_full(hits, HEADINGS_CAP)
            found += hits
    if len(found) < wanted:
        for tier in tiers:
            hits = await store.select_text_hits(connection, replace(tier, cap=TEXTS_CAP))
            capped |= _is_full(hits, TEXTS_CAP)
            found += hits
    found.sort(key=lambda hit: (-hit.score, hit.document_id, hit.position))
    return found[:wanted], capped


def _tiers(
    request: SearchRequest, scopes: Sequence[Scope], after: Place, wanted: int
) -> list[Tier]:
    marked = request.source is not None or request.user_id is not None or len(scopes) > 1
    return [
        Tier(
            match=_match(scope, marked=marked),
            rank=scope.query.match,
            generations=[generation.id for generation in scope.generations],
            path=request.path,
            cap=TEXTS_CAP,
            after=after,
            limit=wanted,
        )
        for scope in scopes
    ]


def _match(scope: Scope, *, marked: bool) -> str:
    if not marked or len(scope.generations) > MAX_MARKS:
        return scope.query.match
    return scope.query.within([generation.source_number for generation in scope.generations])


def _is_full(hits: Sequence[Ranked], cap: int) -> bool:
    return bool(hits) and hits[0].live >= cap
