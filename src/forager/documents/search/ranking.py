"""Ranking: sections that match are selected by headings, then by texts, and scored together.

Every selection stops at a number of matches that readers can see, so that common words are
answered nearly as quickly as rare ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from forager.db.database import Connection
from forager.db.text_search import CONFIGURATIONS, primary
from forager.documents.search import store
from forager.documents.search.hit import SearchRequest
from forager.documents.search.indexing import PATH_LENGTH
from forager.documents.search.score import Candidate, Terms, Weights, rarity, score
from forager.documents.search.store import Among, Lookup, SearchedGeneration
from forager.documents.search.tsquery import Query, Reading, TsQuery, any_of, build
from forager.documents.store.words import kind_lexeme, language_lexeme, source_lexeme
from forager.index.engine import View
from forager.index.kind import WINDOW
from forager.index.tsquery import engine_query

_LANGUAGES = {config: language for language, config in CONFIGURATIONS.items()}


@dataclass(frozen=True, slots=True)
class Scope:
    """Generations whose sources are indexed under one configuration, and the query under it."""

    config: str
    generations: Sequence[SearchedGeneration]
    query: TsQuery
    terms: Terms

    @property
    def generation_ids(self) -> list[int]:
        return [generation.id for generation in self.generations]


async def scopes_of(
    connection: Connection,
    query: Query,
    generations: Sequence[SearchedGeneration],
    reading: Reading,
    prefers: str | None = None,
) -> list[Scope]:
    """The query under each configuration that it means something under."""
    by_config: dict[str, list[SearchedGeneration]] = {}
    for generation in generations:
        by_config.setdefault(generation.config, []).append(generation)
    texts = [term.text for term in query.terms]
    if not texts or not by_config:
        return []
    words = await store.select_term_queries(connection, list(by_config), texts)
    built = [
        (config, members, build(query, words[config], reading))
        for config, members in by_config.items()
    ]
    return [
        Scope(config, members, made, await _terms(connection, made, members, config, prefers))
        for config, members, made in built
        if made.match
    ]


async def _terms(
    connection: Connection,
    query: TsQuery,
    generations: Sequence[SearchedGeneration],
    config: str,
    prefers: str | None,
) -> Terms:
    """The weight of each term by its rarity; terms without counts weigh the same."""
    lexemes = [term.lexemes for term in query.terms]
    total, counts = await store.select_word_counts(
        connection, [each.id for each in generations], [word for row in lexemes for word in row]
    )
    return Terms(
        texts=[term.text for term in query.terms],
        rarity=[rarity(min((counts.get(w, 0) for w in row), default=0), total) for row in lexemes],
        typed=query.typed,
        language=primary(prefers) if prefers else _LANGUAGES.get(config, ""),
        source_language=_LANGUAGES.get(config, ""),
    )


# characters of two texts that are compared, and how many at least
_COMPARED = 200
_MIN_COMPARED = 40
HEADINGS_CAP = 500
TEXTS_CAP = 400
# with as many headings that match, texts are not looked at
ENOUGH = 150
# candidates whose headings and titles are read
MAX_SCORED = 200
# share of the weight of a query that counts as most, and as some, of its words
MOST, SOME = 0.6, 0.3
# with more sources than this, only the manifest filters by source
MAX_MARKS = 8
# no lexeme is as long
NOWHERE = f"'{'x' * 2000}'"
WEIGHTS = Weights()
_LINK_TARGET = re.compile(r"\]\([^()\s]{0,2000}\)?")

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Sections, best first. `capped`: more match than were ranked."""

    candidates: list[Candidate]
    capped: bool = False


async def rank(
    connection: Connection,
    request: SearchRequest,
    scopes: Sequence[Scope],
    view: View | None = None,
    *,
    share: float = 1.0,
) -> Ranking:
    """Score the sections that match the query, or words with this share of its weight."""
    found: list[Candidate] = []
    capped = False
    for scope in scopes:
        lookups = _Lookups(connection, request, scope, view, marked=_is_marked(request, scopes))
        matching = await lookups.select(scope.query.match)
        if share < 1 and scope.query.is_simple and len(scope.query.terms) > 1:
            matching |= await lookups.select(scope.query.relaxed(scope.terms.rarity, share))
        best = _most_promising(matching.values(), scope)
        await _read_places(connection, best, scope.generation_ids)
        score(best, scope.terms, WEIGHTS)
        for candidate in best:
            candidate.query, candidate.config = scope.query, scope.config
        capped |= lookups.capped or len(best) < len(matching)
        found += best
    return Ranking(_without_repeats(found), capped)


def _without_repeats(candidates: Sequence[Candidate]) -> list[Candidate]:
    """One of the sections that say the same, as translated folders and all-in-one pages have."""
    groups: dict[object, list[Candidate]] = {}
    for each in sorted(candidates, key=_order):
        text = _LINK_TARGET.sub("", each.place.beginning)[:_COMPARED]
        is_long = len(text) >= _MIN_COMPARED
        groups.setdefault((each.place.heading, text) if is_long else id(each), []).append(each)
    for repeats in groups.values():
        # the reader's language, then the smaller page
        first = min(repeats, key=lambda each: (not each.is_preferred, each.place.last_position))
        first.repeats, first.score = len(repeats) - 1, repeats[0].score
        repeats[0] = first
    return sorted((repeats[0] for repeats in groups.values()), key=_order)


def _order(candidate: Candidate) -> tuple[float, int, int]:
    return -candidate.score, candidate.document_id, candidate.position


def _is_marked(request: SearchRequest, scopes: Sequence[Scope]) -> bool:
    return request.source is not None or request.user_id is not None or len(scopes) > 1


def _most_promising(candidates: Iterable[Candidate], scope: Scope) -> list[Candidate]:
    """Those worth a closer look, by what the index alone says."""

    def promise(candidate: Candidate) -> tuple[float, int, int]:
        ranks = zip(scope.terms.rarity, candidate.ranks, candidate.heads, strict=True)
        weight = sum(rarity * ((rank > 0) + rank + head) for rarity, rank, head in ranks)
        return -weight, candidate.document_id, candidate.position

    return sorted(candidates, key=promise)[:MAX_SCORED]


async def _read_places(
    connection: Connection, candidates: Sequence[Candidate], generations: Sequence[int]
) -> None:
    keys = [(each.document_id, each.position) for each in candidates]
    places = await store.select_places(connection, keys, generations)
    for each in candidates:
        each.place = places[each.document_id, each.position]


def _filters(request: SearchRequest, source_numbers: Sequence[int]) -> list[str]:
    """What search rows are marked with, as parts of a query."""
    filters = []
    if source_numbers:
        filters.append(any_of(map(source_lexeme, source_numbers)))
    if request.language is not None:
        filters.append(any_of([language_lexeme(request.language)]))
    if request.kind is not None:
        filters.append(any_of([kind_lexeme(request.kind)]))
    return filters


class _Lookups:
    """The selections of one scope, from all sections or from those that an engine offers."""

    def __init__(
        self,
        connection: Connection,
        request: SearchRequest,
        scope: Scope,
        view: View | None,
        *,
        marked: bool,
    ) -> None:
        self._connection = connection
        self._request = request
        self._scope = scope
        self._view = view
        numbers = [generation.source_number for generation in scope.generations]
        is_marked = marked and len(numbers) <= MAX_MARKS
        self._filters = _filters(request, numbers if is_marked else [])
        self.capped = False

    async def select(self, match: str) -> dict[Key, Candidate]:
        """Sections that match by their headings and, unless these are many, by their texts."""
        found = await self._select(match, HEADINGS_CAP, in_headings=True)
        if len(found) < ENOUGH:
            found |= await self._select(match, TEXTS_CAP, in_headings=False)
        return found

    async def _select(self, match: str, cap: int, *, in_headings: bool) -> dict[Key, Candidate]:
        if self._view is None:
            return await self._among(None, match, cap, in_headings=in_headings)
        return await self._of_engine(self._view, match, cap, in_headings=in_headings)

    async def _of_engine(
        self, view: View, match: str, cap: int, *, in_headings: bool
    ) -> dict[Key, Candidate]:
        """Request more until enough are visible, none are left, or the limit is reached."""
        keys: list[Key] = []
        found: dict[Key, Candidate] = {}
        offers = Offers(view, self._request, self._scope, match, in_headings)
        for end in WINDOWS:
            keys += await offers.find(start=len(keys), size=end - len(keys))
            among = Among(keys, view.untold)
            found = await self._among(among, match, cap, in_headings=in_headings)
            if len(found) >= cap or len(keys) < end:
                return found
        self.capped = True
        return found

    async def _among(
        self, among: Among | None, match: str, cap: int, *, in_headings: bool
    ) -> dict[Key, Candidate]:
        lookup = Lookup(
            match=" & ".join([f"({match})", *self._filters]),
            terms=[term.query for term in self._scope.query.terms],
            defined=[term.defined or NOWHERE for term in self._scope.query.terms],
            generations=self._scope.generation_ids,
            path=self._request.path,
            in_headings=in_headings,
            cap=cap,
            among=among,
        )
        found = await store.select_candidates(self._connection, lookup)
        self.capped |= len(found) >= cap
        return {(each.document_id, each.position): each for each in found}


# How many are asked for, if too few of those before are to be seen by readers: most are of
# generations that are published, so the first are nearly always enough.
WINDOWS = (1_500, 5_000, WINDOW)
# with more sources than this, only the manifest filters by source
MAX_SOURCES = 1_000


@dataclass(frozen=True, slots=True)
class Offers:
    """What an index offers for one query."""

    view: View
    request: SearchRequest
    scope: Scope
    match: str
    in_headings: bool

    async def find(self, *, start: int, size: int) -> list[Key]:
        """Documents and positions of sections, the best first."""
        found = await self.view.engine.find(
            self.view.index,
            self._query("head_words" if self.in_headings else "words"),
            ("document_id", "position"),
            start=start,
            size=size,
        )
        return [(document, position) for document, position in found]

    def _query(self, field: str) -> dict[str, Any]:
        filters: list[dict[str, Any]] = [{"term": {"config": self.scope.config}}]
        numbers = [generation.source_number for generation in self.scope.generations]
        if len(numbers) <= MAX_SOURCES:
            filters.append({"terms": {"source_number": numbers}})
        if self.request.path is not None:
            filters.append({"prefix": {"path": self.request.path[:PATH_LENGTH]}})
        return {"bool": {"must": [engine_query(self.match, field)], "filter": filters}}
