"""A source to crawl by hand."""

from __future__ import annotations

import pytest

from documents.searching import Look
from forager.db.database import Database
from forager.documents.search import SearchPage, SearchRequest, search
from search_corpus import Corpus


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


@pytest.fixture
def look(database: Database) -> Look:
    async def look(query: str, **more: object) -> SearchPage:
        return await search(database, SearchRequest(query=query, **more))  # type: ignore[arg-type]

    return look
