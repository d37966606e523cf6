"""Search for products by words.

The words of a product were indexed with the text search configuration of its language. A query is
parsed by all configurations, and each result applies to the products of that configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from forager.db.cursor import check_limit
from forager.db.database import Connection, Database
from forager.db.text_search import CONFIGURATIONS, NEUTRAL, quoted
from forager.extract.product.wording import gtin_of
from forager.extract.text import collapse, storable
from forager.index.engine import Found, IndexView, SearchEngine, answer
from forager.index.kind import PRODUCTS, WINDOW, IndexMissing
from forager.products.content import config_mark, gtin_mark, sku_mark
from forager.products.filters import Filters, ListPlace, ProductOrder, decode_place, encode_place
from forager.products.indexing import find_products
from forager.products.product import ListedProduct
from forager.products.service import list_products, resolved
from forager.products.store import lists as store
from forager.products.store.lists import RankingQuery

MAX_CHARACTERS = 500
# a common word matches half the catalog: at most this many products are compared
CAP = 2_000
# products that are requested of an engine at a time
PORTION = 250
# PostgreSQL's query tree of a query that no index can answer: only excluded words
_EVERYTHING = "T"
_CONFIGS = sorted({NEUTRAL, *CONFIGURATIONS.values()})


@dataclass(frozen=True, slots=True)
class ProductSearchPage:
    """The best products first. `capped`: more matched than were compared."""

    items: list[ListedProduct]
    next_cursor: str | None
    capped: bool = False
    note: str | None = None


async def list_or_search(
    database: Database,
    words: str | None,
    wanted: Filters,
    order: ProductOrder | None = None,
    *,
    cursor: str | None,
    limit: int,
    engine: SearchEngine | None = None,
) -> ProductSearchPage:
    """Products that match all filters, in this order; with words, the best match first."""
    if words is None:
        order = order or ProductOrder.NEWEST
        page = await list_products(database, wanted, order=order, cursor=cursor, limit=limit)
        return ProductSearchPage(page.items, page.next_cursor)
    return await search_products(database, words, wanted, cursor=cursor, limit=limit, engine=engine)


async def search_products(
    database: Database,
    words: str,
    filters: Filters | None = None,
    *,
    cursor: str | None = None,
    limit: int = 20,
    engine: SearchEngine | None = None,
) -> ProductSearchPage:
    """Find products by words, "phrases", -without, or; by SKU and GTIN as well.

    An engine ranks the products that it finds; PostgreSQL checks that they exist and match the
    filters. With an engine that cannot be used, PostgreSQL answers, and the page's note says so.
    """
    check_limit(limit)
    typed = collapse(storable(words))[:MAX_CHARACTERS]
    async with database.connection() as connection:
        wanted = await resolved(connection, filters)
        question = await _question(connection, typed)
        if question is None:
            return ProductSearchPage(
                [], None, note="There is no word in it that could be looked for."
            )
        search = _Search(connection, wanted, typed, question, cursor, limit + 1)
        try:
            found = await answer(connection, engine, PRODUCTS, search.run, is_last=False)
        except IndexMissing:
            found = await answer(connection, engine, PRODUCTS, search.run, is_last=True)
        (places, capped, ranking), note = found
        shown = places[:limit]
        products = await store.select_listed(connection, [place.id for place in shown])
    more = len(places) > limit
    return ProductSearchPage(
        items=[products[place.id] for place in shown if place.id in products],
        next_cursor=encode_place(shown[-1], wanted, typed, ranking) if more else None,
        capped=capped,
        note=note,
    )


# the best products, whether more match than were compared, and who ranked them: the scores of one
# are no places in the ranking of the other
_Ranking = tuple[Sequence[ListPlace], bool, str]


@dataclass(frozen=True, slots=True)
class _Search:
    """One search, by an engine or by PostgreSQL."""

    connection: Connection
    filters: Filters
    typed: str
    question: RankingQuery
    cursor: str | None
    limit: int

    async def run(self, view: IndexView | None) -> _Ranking:
        return await self._rank() if view is None else await self._ask(view)

    def _after(self, ranking: str) -> ListPlace | None:
        if self.cursor is None:
            return None
        return decode_place(self.cursor, self.filters, self.typed, ranking, kinds=(float,))

    async def _rank(self) -> _Ranking:
        ranked = await store.rank_products(
            self.connection,
            self.filters,
            self.question,
            after=self._after("postgres"),
            cap=CAP,
            limit=self.limit,
        )
        places = [ListPlace(hit.score, hit.id) for hit in ranked]
        return places, bool(ranked) and ranked[0].matched >= CAP, "postgres"

    async def _ask(self, view: IndexView) -> _Ranking:
        """Ask the engine for more until enough are visible, or none are left."""
        last = self._after("engine")
        after = None if last is None else Found(float(str(last.value)), (last.id,))
        places: list[ListPlace] = []
        read = 0
        while read < WINDOW:
            found = await find_products(view, self.typed, self.filters, size=PORTION, after=after)
            ids = [each.ids[0] for each in found]
            visible = await store.select_visible(self.connection, ids, self.filters)
            places += [ListPlace(e.score, e.ids[0]) for e in found if e.ids[0] in visible]
            read += len(found)
            if len(found) < PORTION or len(places) >= self.limit:
                return places[: self.limit], False, "engine"
            after = found[-1]
        return places, True, "engine"


async def _question(connection: Connection, typed: str) -> RankingQuery | None:
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
    return RankingQuery(
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
