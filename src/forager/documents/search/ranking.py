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
from forager.documents.search.store import Key, SearchedGeneration
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
    """The query under each configuration in which it has searchable words."""
    by_config: dict[str, list[SearchedGeneration]] = {}
    for generation in generations:
        by_config.setdefault(generation.config, []).append(generation)
    texts = [text for term in query.terms for text in term.texts]
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
        parts=[term.parts for term in query.terms],
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
# with this many headings that match, texts are not searched
ENOUGH = 150
# candidates whose headings and titles are read
MAX_SCORED = 200
# share of the weight of a query that counts as most, and as some, of its words
MOST, SOME = 0.6, 0.3
# with more sources than this, only the manifest filters by source
MAX_MARKS = 8
# longer than any lexeme
NOWHERE = f"'{'x' * 2000}'"
WEIGHTS = Weights()
_LINK_TARGET = re.compile(r"\]\([^()\s]{0,2000}\)?")


async def rank(
    connection: Connection,
    request: SearchRequest,
    scopes: Sequence[Scope],
    view: View | None = None,
    *,
    share: float = 1.0,
) -> tuple[list[Candidate], bool]:
    """The sections that match the query, or words with this share of its weight, best first.

    Also whether more sections match than were ranked.
    """
    found: list[Candidate] = []
    capped = False
    for scope in scopes:
        lookup = _Lookup(connection, request, scope, view, marked=_is_marked(request, scopes))
        matching = await lookup.select(scope.query.match)
        if share < 1 and scope.query.is_simple and len(scope.query.terms) > 1:
            matching |= await lookup.select(scope.query.relaxed(scope.terms.rarity, share))
        best = _most_promising(matching.values(), scope)
        keys = [(each.document_id, each.position) for each in best]
        places = await store.select_places(connection, keys, scope.generation_ids)
        for key, candidate in zip(keys, best, strict=True):
            candidate.place = places[key]
            candidate.query, candidate.config = scope.query, scope.config
        score(best, scope.terms, WEIGHTS)
        capped |= lookup.capped or len(best) < len(matching)
        found += best
    return _without_repeats(found), capped


def _without_repeats(candidates: Sequence[Candidate]) -> list[Candidate]:
    """One of the sections with the same text, as translated folders and all-in-one pages have."""
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
    """The candidates with the highest weight by the index alone."""

    def promise(candidate: Candidate) -> tuple[float, int, int]:
        ranks = zip(scope.terms.rarity, candidate.ranks, candidate.heads, strict=True)
        weight = sum(rarity * ((rank > 0) + rank + head) for rarity, rank, head in ranks)
        return -weight, candidate.document_id, candidate.position

    return sorted(candidates, key=promise)[:MAX_SCORED]


class _Lookup:
    """Selects matching sections of one scope, from all or from those that an engine offers."""

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
        self._numbers = [generation.source_number for generation in scope.generations]
        # conditions on the marks of search rows
        self._filters = []
        if marked and len(self._numbers) <= MAX_MARKS:
            self._filters.append(any_of(map(source_lexeme, self._numbers)))
        if request.language is not None:
            self._filters.append(any_of([language_lexeme(request.language)]))
        if request.kind is not None:
            self._filters.append(any_of([kind_lexeme(request.kind)]))
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
        keys: list[Key] = []
        found: dict[Key, Candidate] = {}
        # request more until enough are visible, none are left, or the limit is reached
        for end in WINDOWS:
            keys += await self._offered(
                self._view, match, in_headings, start=len(keys), size=end - len(keys)
            )
            among = (keys, self._view.unsent)
            found = await self._among(among, match, cap, in_headings=in_headings)
            if len(found) >= cap or len(keys) < end:
                return found
        self.capped = True
        return found

    async def _offered(
        self, view: View, match: str, in_headings: bool, *, start: int, size: int
    ) -> list[Key]:
        """Sections that the engine offers, best first."""
        filters: list[dict[str, Any]] = [{"term": {"config": self._scope.config}}]
        if len(self._numbers) <= MAX_SOURCES:
            filters.append({"terms": {"source_number": self._numbers}})
        if self._request.path is not None:
            filters.append({"prefix": {"path": self._request.path[:PATH_LENGTH]}})
        words = engine_query(match, "head_words" if in_headings else "words")
        query = {"bool": {"must": [words], "filter": filters}}
        found = await view.find(query, ("document_id", "position"), start=start, size=size)
        return [(document, position) for document, position in found]

    async def _among(
        self,
        among: tuple[Sequence[Key], Sequence[int]] | None,
        match: str,
        cap: int,
        *,
        in_headings: bool,
    ) -> dict[Key, Candidate]:
        found = await store.select_candidates(
            self._connection,
            " & ".join([f"({match})", *self._filters]),
            self._scope.generation_ids,
            terms=[term.query for term in self._scope.query.terms],
            defined=[term.defined or NOWHERE for term in self._scope.query.terms],
            path=self._request.path,
            in_headings=in_headings,
            cap=cap,
            among=among,
        )
        self.capped |= len(found) >= cap
        return {(each.document_id, each.position): each for each in found}


# The number of requested sections, if too few of those before are visible to readers: most are of
# published generations, so the first window is nearly always enough.
WINDOWS = (1_500, 5_000, WINDOW)
# with more sources than this, only the manifest filters by source
MAX_SOURCES = 1_000
