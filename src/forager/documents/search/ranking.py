"""Ranking: sections that match are selected by headings, then by texts, and scored together.

Every selection stops at a number of matches that readers can see, so that common words are
answered nearly as quickly as rare ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from forager.db.database import Connection
from forager.documents.search import store
from forager.documents.search.hit import SearchRequest
from forager.documents.search.indexing import find_sections
from forager.documents.search.scopes import RankedGenerations
from forager.documents.search.score import Candidate, Weights, score
from forager.documents.search.store import Key
from forager.documents.search.tsquery import any_of
from forager.documents.store.words import kind_lexeme, language_lexeme, source_lexeme
from forager.index.engine import Found, IndexView
from forager.index.kind import WINDOW

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
    scopes: Sequence[RankedGenerations],
    *,
    share: float = 1.0,
) -> tuple[list[Candidate], bool]:
    """The sections that match the query, or words with this share of its weight, best first.

    Also whether more sections match than were ranked.
    """
    found: list[Candidate] = []
    capped = False
    for scope in scopes:
        lookup = _Lookup(connection, request, scope, marked=_is_marked(request, scopes))
        matching = await lookup.select(scope.query.match)
        if share < 1 and scope.query.is_simple and len(scope.query.terms) > 1:
            matching |= await lookup.select(scope.query.relaxed(scope.terms.rarity, share))
            if not matching and scope.is_named:
                matching = await lookup.select(scope.query.relaxed(scope.terms.rarity, SOME))
        best = _most_promising(matching.values(), scope)
        keys = [(each.document_id, each.position) for each in best]
        places = await store.select_places(connection, keys, scope.generation_ids)
        for key, candidate in zip(keys, best, strict=True):
            candidate.place = places[key]
            candidate.query, candidate.config = scope.query, scope.config
        score_by_source(best, scope)
        capped |= lookup.capped or len(best) < len(matching)
        found += best
    return _without_repeats(found), capped


def score_by_source(candidates: Sequence[Candidate], scope: RankedGenerations) -> None:
    """Score the candidates of each source by its own vocabulary, and by how well it fits."""
    sources: dict[str, list[Candidate]] = {}
    for each in candidates:
        sources.setdefault(each.place.source_id, []).append(each)
    for source, members in sources.items():
        score(members, scope.terms_by_source.get(source, scope.terms), WEIGHTS)
        for each in members:
            each.score *= scope.fits.get(source, 1.0)


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


def _is_marked(request: SearchRequest, scopes: Sequence[RankedGenerations]) -> bool:
    return request.source is not None or request.user_id is not None or len(scopes) > 1


def _most_promising(candidates: Iterable[Candidate], scope: RankedGenerations) -> list[Candidate]:
    """The candidates with the highest weight by the index alone."""

    def promise(candidate: Candidate) -> tuple[float, int, int]:
        ranks = zip(scope.terms.rarity, candidate.ranks, candidate.heads, strict=True)
        weight = sum(rarity * ((rank > 0) + rank + head) for rarity, rank, head in ranks)
        return -weight, candidate.document_id, candidate.position

    return sorted(candidates, key=promise)[:MAX_SCORED]


class _Lookup:
    """Selects matching sections of one scope."""

    def __init__(
        self,
        connection: Connection,
        request: SearchRequest,
        scope: RankedGenerations,
        *,
        marked: bool,
    ) -> None:
        self._connection = connection
        self._request = request
        self._scope = scope
        self._filters = marks_of(request)
        if marked and len(scope.generations) <= MAX_MARKS:
            numbers = [generation.source_number for generation in scope.generations]
            self._filters.append(any_of(map(source_lexeme, numbers)))
        self.capped = False

    async def select(self, match: str) -> dict[Key, Candidate]:
        """Sections that match by their headings and, unless these are many, by their texts."""
        found = await self._select(match, HEADINGS_CAP, in_headings=True)
        if len(found) < ENOUGH:
            found |= await self._select(match, TEXTS_CAP, in_headings=False)
        return found

    async def _select(self, match: str, cap: int, *, in_headings: bool) -> dict[Key, Candidate]:
        found = await store.select_candidates(
            self._connection,
            " & ".join([f"({match})", *self._filters]),
            self._scope.generation_ids,
            terms=[term.query for term in self._scope.query.terms],
            defined=[term.defined or NOWHERE for term in self._scope.query.terms],
            path=self._request.path,
            in_headings=in_headings,
            cap=cap,
        )
        self.capped |= len(found) >= cap
        return {(each.document_id, each.position): each for each in found}


def marks_of(request: SearchRequest) -> list[str]:
    """Conditions on the marks of search rows: language and kind."""
    marks = [] if request.language is None else [any_of([language_lexeme(request.language)])]
    return marks if request.kind is None else [*marks, any_of([kind_lexeme(request.kind)])]


# --- with an engine ------------------------------------------------------------------------------

# The number of requested sections, if too few of those before are visible to readers: most are of
# published generations, so the first window is nearly always enough.
WINDOWS = (500, 2_000, WINDOW)


async def rank_with_engine(
    connection: Connection,
    request: SearchRequest,
    scopes: Sequence[RankedGenerations],
    view: IndexView,
) -> tuple[list[Candidate], bool]:
    """The sections that the engine finds and readers see, in the order of the engine.

    Also whether there may be more.
    """
    found: list[Found] = []
    visible: list[Found] = []
    for end in WINDOWS:
        window = await find_sections(
            view,
            request.query,
            [each.source_number for scope in scopes for each in scope.generations],
            request.path,
            size=end - len(found),
            after=found[-1] if found else None,
        )
        found += window
        visible += await _visible(connection, request, scopes, window)
        is_all = len(found) < end
        if is_all or len(visible) >= MAX_SCORED:
            break
    shown = visible[:MAX_SCORED]
    return await _candidates(connection, scopes, shown), not is_all or len(shown) < len(visible)


async def _visible(
    connection: Connection,
    request: SearchRequest,
    scopes: Sequence[RankedGenerations],
    found: Sequence[Found],
) -> list[Found]:
    keys = [_key(each) for each in found]
    generations = [id_ for scope in scopes for id_ in scope.generation_ids]
    marks = " & ".join(marks_of(request))
    seen = await store.select_visible(connection, keys, generations, path=request.path, marks=marks)
    return [each for each in found if _key(each) in seen]


async def _candidates(
    connection: Connection, scopes: Sequence[RankedGenerations], found: Sequence[Found]
) -> list[Candidate]:
    """The sections with their pages, and the terms that PostgreSQL finds in them."""
    scores = {_key(each): each.score for each in found}
    generations = [id_ for scope in scopes for id_ in scope.generation_ids]
    places = await store.select_places(connection, list(scores), generations)
    candidates: list[Candidate] = []
    for scope in scopes:
        names = {generation.source_id for generation in scope.generations}
        keys = [key for key in scores if key in places and places[key].source_id in names]
        terms = [term.query for term in scope.query.terms]
        matched = await store.select_matched_terms(connection, keys, terms)
        candidates += [
            Candidate(
                *key, [float(has) for has in matched[key]], [False] * len(terms), 0, (), False, 0.0,
                place=places[key], score=scores[key], query=scope.query, config=scope.config,
            )
            for key in keys
            if key in matched
        ]  # fmt: skip
    return _without_repeats(candidates)


def _key(found: Found) -> Key:
    document, position = found.ids
    return document, position
