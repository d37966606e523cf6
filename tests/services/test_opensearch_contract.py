"""What search promises, kept by a search engine as it is by PostgreSQL alone.

The tests are those of PostgreSQL's search. Every question is asked of both, and the answers must be
the same, to the score and the cursor.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from documents.test_search import *  # noqa: F403
from documents.test_search_generations import *  # noqa: F403
from documents.test_search_odd_queries import *  # noqa: F403
from forager.db.database import Database
from forager.documents.search import SearchPage, SearchRequest, search
from forager.documents.search.indexing import INDEXED_SECTIONS
from forager.products.indexing import INDEXED_PRODUCTS
from forager.products.search import search_products
from products import test_product_search as products
from products.conftest import shop
from products.test_product_search import *  # noqa: F403
from services.search_index import Searched, searched
from services.servers.opensearch import OpenSearch

__all__ = ["shop"]

# whether the engine has received every document, or none: no answer may depend on it
pytestmark = pytest.mark.parametrize("fed", [True, False], ids=["fed", "unfed"])
PUBLISHED = "SELECT max(published_at) FROM generations"


@pytest.fixture
async def index(
    opensearch: OpenSearch,
    database: Database,
    longer_limits: None,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Searched]:
    of_products = request.function.__module__ == products.__name__
    kind = INDEXED_PRODUCTS if of_products else INDEXED_SECTIONS
    async with searched(opensearch, database, kind) as index:
        yield index


@pytest.fixture(name="look")
def look_with_engine(index: Searched, fed: bool) -> Callable[..., Awaitable[SearchPage]]:
    engine = index.engine

    async def look(query: str, **more: Any) -> SearchPage:
        request = SearchRequest(query=query, **more)
        if fed:
            await index.feed()
        published = await index.row(PUBLISHED)
        page = await search(index.database, request, engine)
        alone = await search(index.database, request)
        # of too many matches, the engine offers the best, and PostgreSQL alone those stored first
        capped = alone.capped or page.capped
        if not capped and published == await index.row(PUBLISHED):
            assert replace(page, took=0) == replace(alone, took=0)
        return page

    return look


@pytest.fixture(autouse=True)
def engine_for_products(index: Searched, fed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = index.engine

    async def both(*arguments: Any, **more: Any) -> Any:
        if fed:
            await index.feed()
        page = await search_products(*arguments, **more, engine=engine)
        assert page == await search_products(*arguments, **more)
        return page

    monkeypatch.setattr(products, "search_products", both)
