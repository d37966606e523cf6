"""What a query means for each source: its words there, and how well the source fits.

A query may name the source or its version ("erlang spawn_link", "boost 1.81 filesystem"). For that
source, the name is no word to look for; for others, it is one that they lack.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from forager.db.database import Connection
from forager.db.text_search import CONFIGURATIONS
from forager.documents.search import store
from forager.documents.search.score import WeightedTerms, rarity
from forager.documents.search.store import SearchedGeneration
from forager.documents.search.tsquery import MatchMode, Query, TermKind, TsQuery, build, distance
from forager.documents.versions import base_name, name_parts, version_key, version_of
from forager.extract.languages import primary_language

_LANGUAGES = {config: language for language, config in CONFIGURATIONS.items()}
_MIN_MISSPELLED = 5
# the factor of the score for a source that has none of the words that tell sources apart
FIT = 0.65
# the factor for sources that the query does not name, if it names others
NOT_NAMED = 0.5
# the factor for versions that the query does not ask for
OTHER_VERSION = 0.8

# occurrences of a generation's words, and the number of its sections under ""
Counts = Mapping[int, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class RankedGenerations:
    """Generations in which a query has the same words."""

    config: str
    generations: Sequence[SearchedGeneration]
    query: TsQuery
    terms: WeightedTerms
    # the terms with their rarity in each source, and the factor of its scores
    terms_by_source: Mapping[str, WeightedTerms] = field(default_factory=dict)
    fits: Mapping[str, float] = field(default_factory=dict)
    is_named: bool = False

    @property
    def generation_ids(self) -> list[int]:
        return [generation.id for generation in self.generations]


@dataclass(frozen=True, slots=True)
class NamedTerms:
    """The terms of a query that name a source or a version, by generation."""

    terms: Mapping[int, frozenset[str]]
    # misspelled names and what they stand for
    corrected: Mapping[str, str] = field(default_factory=dict)


async def scopes_of(
    connection: Connection,
    query: Query,
    generations: Sequence[SearchedGeneration],
    reading: MatchMode,
    prefers: str | None = None,
    named: NamedTerms | None = None,
) -> list[RankedGenerations]:
    """The query under each configuration in which it has searchable words."""
    groups: dict[tuple[str, frozenset[str]], list[SearchedGeneration]] = {}
    for generation in generations:
        names = named.terms.get(generation.id, frozenset()) if named else frozenset()
        groups.setdefault((generation.config, names), []).append(generation)
    texts = [text for term in query.terms for text in term.texts]
    if not texts or not groups:
        return []
    words = await store.select_term_queries(
        connection, list(dict.fromkeys(config for config, _ in groups)), texts
    )
    built = []
    for (config, names), members in groups.items():
        made = build(query, words[config], reading, without=names)
        if not made.match and names:  # the query is nothing but the name
            made, names = build(query, words[config], reading), frozenset()
        if made.match:
            built.append((config, members, made, bool(names)))
    lexemes = {word for _, _, made, _ in built for term in made.terms for word in term.lexemes}
    counts = await store.select_word_counts(
        connection, [each.id for each in generations], list(lexemes)
    )
    fits = _fits([(members, made) for _, members, made, _ in built], counts)
    names_any = any(is_named for *_, is_named in built)
    factors = {
        each.source_id: fits[each.source_id]
        * _version_factor(each.source_id, generations, named)
        * (NOT_NAMED if names_any and not is_named else 1.0)
        for _, members, _, is_named in built
        for each in members
    }
    return [
        RankedGenerations(
            config,
            members,
            made,
            _terms(made, members, counts, config, prefers),
            {each.source_id: _terms(made, [each], counts, config, prefers) for each in members},
            factors,
            is_named,
        )
        for config, members, made, is_named in built
    ]


def _terms(
    query: TsQuery,
    generations: Sequence[SearchedGeneration],
    counts: Counts,
    config: str,
    prefers: str | None,
) -> WeightedTerms:
    """The weight of each term by its rarity; terms without counts weigh the same."""
    known = [counts.get(each.id, {}) for each in generations]
    total = sum(words.get("", 0) for words in known)
    found = [
        min((sum(words.get(lexeme, 0) for words in known) for lexeme in term.lexemes), default=0)
        for term in query.terms
    ]
    return WeightedTerms(
        texts=[term.text for term in query.terms],
        parts=[term.parts for term in query.terms],
        rarity=[rarity(count, total) for count in found],
        typed=query.typed,
        language=primary_language(prefers) if prefers else _LANGUAGES.get(config, ""),
        source_language=_LANGUAGES.get(config, ""),
    )


# --- how well a source fits --------------------------------------------------------------------


def _fits(
    scopes: Sequence[tuple[Sequence[SearchedGeneration], TsQuery]], counts: Counts
) -> dict[str, float]:
    """The factor of the scores of each source: 1 for the one whose vocabulary fits best."""
    shares: dict[str, dict[str, float]] = {}
    for members, query in scopes:
        for generation in members:
            words = counts.get(generation.id, {})
            shares[generation.source_id] = {
                term.text: min((words.get(lexeme, 0) for lexeme in term.lexemes), default=0)
                / (words.get("", 0) + 1)
                for term in query.terms
            }
    if len(shares) < 2:
        return dict.fromkeys(shares, 1.0)
    most: Counter[str] = Counter()
    having: Counter[str] = Counter()
    for found in shares.values():
        for text, share in found.items():
            most[text] = max(most[text], share)  # type: ignore[assignment]
            having[text] += share > 0
    weights = {
        text: math.log((len(shares) + 1) / (having[text] + 0.5)) for text in most if most[text]
    }
    total = sum(weights.values())
    if not total:
        return dict.fromkeys(shares, 1.0)
    return {
        source: 1 - FIT + FIT * _fit(found, weights, most) / total
        for source, found in shares.items()
    }


def _fit(
    found: Mapping[str, float], weights: Mapping[str, float], most: Mapping[str, float]
) -> float:
    # the square root: half as common is nearly as good
    return sum(
        weight * (math.sqrt(found[text] / most[text]) if text in found else 1.0)
        for text, weight in weights.items()
    )


# --- names and versions in the query -----------------------------------------------------------


async def names_in(
    connection: Connection, query: Query, generations: Sequence[SearchedGeneration]
) -> NamedTerms:
    """The terms of a query that name one of several sources, or one of its versions."""
    if len(generations) < 2 or len(query.alternatives) != 1:
        return NamedTerms({})
    typed = [
        term.text.lower()
        for term in query.terms
        if not term.negated and term.kind is not TermKind.PHRASE
    ]
    names = _names_of([generation.source_id for generation in generations])
    corrected = await _corrected(connection, typed, set().union(*names.values()), generations)
    meant = {text: corrected.get(text, text) for text in typed}
    found: dict[int, frozenset[str]] = {}
    for generation in generations:
        source = generation.source_id
        matching = {text for text in typed if meant[text] in names[source]}
        version = version_of(source)
        if version is not None and (
            matching or len(generations) == len(_versions(source, generations))
        ):
            matching |= {text for text in typed if is_version(text, version)}
        if matching:
            found[generation.id] = frozenset(matching)
    return NamedTerms(found, corrected)


def is_version(text: str, version: str) -> bool:
    """Whether a text names a version: `3.12` and `v3` name 3.12.1."""
    wanted = text.removeprefix("v")
    return bool(wanted[:1].isdigit()) and (version == wanted or version.startswith(f"{wanted}."))


def _names_of(sources: Sequence[str]) -> dict[str, set[str]]:
    """The words that name each source: its name, and the parts of it that few others share."""
    found = {}
    for source in sources:
        base = base_name(source).lower()
        found[source] = name_parts(source) | {base}
    shared = Counter(
        part for source in {base_name(s): s for s in sources}.values() for part in found[source]
    )
    limit = max(2, len({base_name(source) for source in sources}) / 2)
    return {
        source: {part for part in parts if shared[part] <= limit} for source, parts in found.items()
    }


async def _corrected(
    connection: Connection,
    typed: Iterable[str],
    names: set[str],
    generations: Sequence[SearchedGeneration],
) -> dict[str, str]:
    """Misspelled names of sources: words that no source has, one or two letters away from one."""
    near: dict[str, str] = {}
    for text in typed:
        allowed = 0 if len(text) < _MIN_MISSPELLED else 1 if len(text) < 8 else 2
        if text in names or not allowed or not text.isalnum():
            continue
        close = [name for name in names if name[0] == text[0] and distance(text, name) <= allowed]
        if close:
            near[text] = min(close, key=lambda name: (distance(text, name), name))
    if not near:
        return {}
    known = await store.select_spelled(connection, [each.id for each in generations], list(near))
    return {text: name for text, name in near.items() if text not in known}


def _versions(source: str, generations: Sequence[SearchedGeneration]) -> list[SearchedGeneration]:
    base = base_name(source)
    return [each for each in generations if base_name(each.source_id) == base]


def _version_factor(
    source: str, generations: Sequence[SearchedGeneration], named: NamedTerms | None
) -> float:
    """Less than 1 for versions that are not the newest, or not those that the query names."""
    versions = _versions(source, generations)
    if len(versions) < 2:
        return 1.0
    asked = [each.source_id for each in versions if named and _names_version(each, named)]
    newest = max(
        (each.source_id for each in versions), key=lambda name: version_key(version_of(name))
    )
    return 1.0 if source in (asked or [newest]) else OTHER_VERSION


def _names_version(generation: SearchedGeneration, named: NamedTerms) -> bool:
    version = version_of(generation.source_id)
    names = named.terms.get(generation.id, ())
    return version is not None and any(is_version(text, version) for text in names)


def without_names(query: Query, names: frozenset[str]) -> Query:
    """The query without the terms that name a source."""
    kept = tuple(
        tuple(term for term in terms if term.text.lower() not in names)
        for terms in query.alternatives
    )
    return replace(query, alternatives=tuple(terms for terms in kept if terms))
