"""Scopes: what is looked for, in the words of each language that is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forager.db.database import Connection
from forager.documents.search import store
from forager.documents.search.query import Query
from forager.documents.search.store import SearchedGeneration
from forager.documents.search.tsquery import TsQuery, build


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
