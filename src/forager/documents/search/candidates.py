"""Candidates of a search engine: sections that may match. Whether they do is PostgreSQL's to say.

PostgreSQL looks at each candidate: whether it is in the generations that are searched, whether it
has the words, and how well it fits. So scores, order and cursors are the same with an engine and
without one, and a search can go on where another began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forager.documents.search.hit import SearchRequest
from forager.documents.search.indexing import PATH_LENGTH
from forager.documents.search.scope import Scope
from forager.index.choice import View
from forager.index.mapping import WINDOW
from forager.index.tsquery import engine_query

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
