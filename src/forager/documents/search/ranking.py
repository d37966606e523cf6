"""Ranking in two tiers: headings first, texts only when headings do not fill the page.

Both tiers stop at a number of matches that readers can see, so that common words are answered
nearly as quickly as rare ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forager.db.database import Connection
from forager.documents.search import store
from forager.documents.search.cursor import Place
from forager.documents.search.hit import SearchRequest
from forager.documents.search.indexing import PATH_LENGTH
from forager.documents.search.scope import Scope
from forager.documents.search.store import Among, Ranked, Tier
from forager.index.engine import View
from forager.index.mapping import WINDOW
from forager.index.tsquery import engine_query

HEADINGS_CAP = 1_000
TEXTS_CAP = 1_000
# more sources than this are told apart by the manifest alone
MAX_MARKS = 8
# headings score from 1 to 2, texts from 0 to 1
_HEADINGS = 1.0

Select = Callable[[Connection, Tier], Awaitable[list[Ranked]]]


async def rank(
    connection: Connection,
    request: SearchRequest,
    scopes: Sequence[Scope],
    after: Place,
    view: View | None = None,
) -> tuple[list[Ranked], bool]:
    """The best sections after a place, one more than asked for if there are; whether capped."""
    wanted = request.limit + 1
    found: list[Ranked] = []
    capped = False
    look = _Look(connection, request, scopes, after, view)
    if after[0] >= _HEADINGS:
        found, capped = await look.headings()
    if len(found) < wanted:
        texts, texts_capped = await look.texts()
        found, capped = [*found, *texts], capped or texts_capped
    found.sort(key=lambda hit: (-hit.score, hit.document_id, hit.position))
    return found[:wanted], capped


class _Look:
    """One search through the tiers, all that matches or what an engine offers."""

    def __init__(
        self,
        connection: Connection,
        request: SearchRequest,
        scopes: Sequence[Scope],
        after: Place,
        view: View | None,
    ) -> None:
        self._connection = connection
        self._tiers = _tiers(request, scopes, after, request.limit + 1)
        self._candidates = None if view is None else Candidates(view, request, scopes)

    async def headings(self) -> tuple[list[Ranked], bool]:
        return await self._tier(store.select_heading_hits, HEADINGS_CAP, headings=True)

    async def texts(self) -> tuple[list[Ranked], bool]:
        return await self._tier(store.select_text_hits, TEXTS_CAP, headings=False)

    async def _tier(self, select: Select, cap: int, *, headings: bool) -> tuple[list[Ranked], bool]:
        if not self._tiers:
            return [], False
        if self._candidates is None:
            return await self._select(select, cap, None)
        return await self._of_engine(self._candidates, select, cap, headings=headings)

    async def _of_engine(
        self, candidates: Candidates, select: Select, cap: int, *, headings: bool
    ) -> tuple[list[Ranked], bool]:
        """Ask for more until enough of them can be seen, or there are no more, or too many."""
        keys: list[Key] = []
        found: list[Ranked] = []
        for end in WINDOWS:
            offered = await candidates.find(
                headings=headings, start=len(keys), size=end - len(keys)
            )
            keys += offered
            among = Among(keys, candidates.view.untold)
            found, capped = await self._select(select, cap, among)
            if capped or len(keys) < end:
                return found, capped
        return found, True

    async def _select(
        self, select: Select, cap: int, among: Among | None
    ) -> tuple[list[Ranked], bool]:
        found: list[Ranked] = []
        capped = False
        for tier in self._tiers:
            hits = await select(self._connection, replace(tier, cap=cap, among=among))
            capped |= _is_full(hits, cap)
            found += hits
        return found, capped


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


# How many are asked for, if too few of those before are to be seen by readers: most are of
# generations that are published, so the first are nearly always enough.
WINDOWS = (1_500, 5_000, WINDOW)
# more sources than this are told apart by the manifest alone
MAX_SOURCES = 1_000

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Candidates:
    """What an index offers for one question."""

    view: View
    request: SearchRequest
    scopes: Sequence[Scope]

    async def find(self, *, headings: bool, start: int, size: int) -> list[Key]:
        """Documents and positions of sections, the best first."""
        found = await self.view.engine.find(
            self.view.index,
            self._query("head_words" if headings else "words"),
            ("document_id", "position"),
            start=start,
            size=size,
        )
        return [(document, position) for document, position in found]

    def _query(self, field: str) -> dict[str, Any]:
        ways = [self._scope(scope, field) for scope in self.scopes]
        filters = []
        if self.request.path is not None:
            filters = [{"prefix": {"path": self.request.path[:PATH_LENGTH]}}]
        return {"bool": {"should": ways, "minimum_should_match": 1, "filter": filters}}

    def _scope(self, scope: Scope, field: str) -> dict[str, Any]:
        filters: list[dict[str, Any]] = [{"term": {"config": scope.config}}]
        numbers = [generation.source_number for generation in scope.generations]
        if len(numbers) <= MAX_SOURCES:
            filters.append({"terms": {"source_number": numbers}})
        return {"bool": {"must": [engine_query(scope.query.match, field)], "filter": filters}}
