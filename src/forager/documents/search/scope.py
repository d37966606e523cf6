"""Scopes: what is looked for, in the words of each language that is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forager.db.database import Connection
from forager.db.text_search import CONFIGURATIONS, primary
from forager.documents.search import store
from forager.documents.search.score import Terms, rarity
from forager.documents.search.store import SearchedGeneration
from forager.documents.search.tsquery import Query, Reading, TsQuery, build

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
    """What each term tells; terms that nothing was counted of tell the same."""
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
