"""Search for products by words.

The words of a product were indexed with the text search configuration of its language. A query is
parsed by all configurations, and each result applies to the products of that configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from forager.db.cursor import check_limit
from forager.db.database import Connection, Database
from forager.db.text_search import CONFIGURATIONS, NEUTRAL
from forager.extract.product.wording import gtin_of
from forager.extract.text import collapse, storable
from forager.index.engine import Engine, View, answer
from forager.index.kind import PRODUCTS, WINDOW, IndexMissing
from forager.products.content import config_mark, gtin_mark, quoted, sku_mark
from forager.products.filters import Filters, Place, decode_place, encode_place
from forager.products.indexing import candidates
from forager.products.record import ListedProduct
from forager.products.service import resolved
from forager.products.store import lists as store
from forager.products.store.lists import Question, Ranked

MAX_CHARACTERS = 500
# a common word matches half the catalog: at most this many products are compared
CAP = 2_000
# candidates that are requested of an engine, as long as too few match
WINDOWS = (2_500, 6_000, WINDOW)
# PostgreSQL's query tree of a query that no index can answer: only excluded words
_EVERYTHING = "T"
_CONFIGS = sorted({NEUTRAL, *CONFIGURATIONS.values()})


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The best products first. `capped`: more matched than were compared."""

    items: list[ListedProduct]
    next_cursor: str | None
    capped: bool = False
    note: str | None = None


async def search_products(
    database: Database,
    words: str,
    filters: Filters | None = None,
    *,
    cursor: str | None = None,
    limit: int = 20,
    engine: Engine | None = None,
) -> SearchPage:
    """Find products by words, "phrases", -without, or; by SKU and GTIN as well.

    With an engine that cannot be used, PostgreSQL answers, and the page's note says so.
    """
    check_limit(limit)
    typed = collapse(storable(words))[:MAX_CHARACTERS]
    async with database.connection() as connection:
        wanted = await resolved(connection, filters)
        question = await _question(connection, typed)
        if question is None:
            return SearchPage([], None, note="There is no word in it that could be looked for.")
        after = None if cursor is None else decode_place(cursor, wanted, typed, kinds=(float,))
        search = _Search(connection, wanted, question, after, limit + 1)
        try:
            found = await answer(connection, engine, PRODUCTS, search.run, is_last=False)
        except IndexMissing:
            found = await answer(connection, engine, PRODUCTS, search.run, is_last=True)
        (ranked, capped), trouble = found
        shown = ranked[:limit]
        products = await store.select_listed(connection, [hit.id for hit in shown])
    more = len(ranked) > limit
    last = Place(shown[-1].score, shown[-1].id) if more else None
    return SearchPage(
        items=[products[hit.id] for hit in shown if hit.id in products],
        next_cursor=None if last is None else encode_place(last, wanted, typed),
        capped=capped,
        note=trouble,
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """One search among all products, or among the candidates of an engine."""

    connection: Connection
    filters: Filters
    question: Question
    after: Place | None
    limit: int

    async def run(self, view: View | None) -> tuple[list[Ranked], bool]:
        """The best products, and whether more match than were compared."""
        return await self.rank() if view is None else await self.among(view)

    async def rank(self, among: Sequence[int] | None = None) -> tuple[list[Ranked], bool]:
        ranked = await store.rank_products(
            self.connection,
            self.filters,
            self.question,
            after=self.after,
            cap=CAP,
            limit=self.limit,
            among=among,
        )
        return ranked, bool(ranked) and ranked[0].matched >= CAP

    async def among(self, view: View) -> tuple[list[Ranked], bool]:
        """Request more until enough match, none are left, or the limit is reached."""
        offered: list[int] = []
        ranked: list[Ranked] = []
        for end in WINDOWS:
            offered += await candidates(
                view, self.question, self.filters, start=len(offered), size=end - len(offered)
            )
            ranked, capped = await self.rank([*view.unsent, *offered])
            if capped or len(offered) < end:
                return ranked, capped
        return ranked, True


async def _question(connection: Connection, typed: str) -> Question | None:
    """The query for all configurations; None if none of them finds a word in it."""
    readings = {
        reading.config: reading
        for reading in await store.read_words(connection, typed, _CONFIGS)
        if reading.wanted not in ("", _EVERYTHING)
    }
    if not readings:
        return None
    alike: dict[str, list[str]] = {}
    for reading in readings.values():
        alike.setdefault(reading.words, []).append(reading.config)
    exact = _either(quoted(mark) for mark in _exact_marks(typed))
    wanted = {config: reading.wanted for config, reading in readings.items()}
    return Question(
        match=_either([*_limited(alike), exact]),
        exact=exact,
        by_language={code: wanted.get(config, "") for code, config in CONFIGURATIONS.items()},
        otherwise=wanted.get(NEUTRAL, ""),
    )


def _exact_marks(typed: str) -> Iterable[str]:
    yield sku_mark(typed[:100])
    gtin = gtin_of(typed)
    if gtin is not None:
        yield gtin_mark(gtin)


def _limited(alike: Mapping[str, list[str]]) -> Iterator[str]:
    """Readings, each for the products of its configurations.

    The most common one is for all: nearly all products would have one of its many marks, and
    looking them up costs more than the rest of the search.
    """
    common = max(alike, key=lambda words: len(alike[words]))
    yield f"({common})"
    for words, configs in alike.items():
        if words != common:
            yield f"(({words}) & ({_either(quoted(config_mark(config)) for config in configs)}))"


def _either(parts: Iterable[str]) -> str:
    return " | ".join(parts)
