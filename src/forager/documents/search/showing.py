"""From ranked sections to hits: address, headings, and the lines that show why it was found."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from forager.db.database import Connection
from forager.documents.search import store
from forager.documents.search.hit import Hit
from forager.documents.search.plain import one_line
from forager.documents.search.query import Kind, Query
from forager.documents.search.scope import Scope
from forager.documents.search.snippets import HEADLINE_OPTIONS, make_snippet, text_to_mark
from forager.documents.search.store import FoundSection, Ranked
from forager.documents.search.tsquery import TsQuery

# a lexeme is at least so long before its end may be inflected away
_HINT = 4
# what a fragment may hold as it is (RFC 3986); a page may already have escaped the rest
_ANCHOR = "!$&'()*+,;=:@/?%-._~"


async def hits_of(
    connection: Connection, query: Query, scopes: Sequence[Scope], ranked: Sequence[Ranked]
) -> list[Hit]:
    if not ranked:
        return []
    keys = [(hit.document_id, hit.position) for hit in ranked]
    generations = [generation.id for scope in scopes for generation in scope.generations]
    sections = await store.select_sections(connection, keys, generations)
    found = [(hit, sections[key]) for hit, key in zip(ranked, keys, strict=True)]
    names = [term.text for term in query.terms if term.kind is Kind.IDENTIFIER and not term.negated]
    marked = await _mark(connection, scopes, [section for _, section in found], names)
    return [
        _hit(hit, section, text, names) for (hit, section), text in zip(found, marked, strict=True)
    ]


async def _mark(
    connection: Connection,
    scopes: Sequence[Scope],
    sections: Sequence[FoundSection],
    names: Sequence[str],
) -> list[str]:
    """The part of each section that is worth showing, with what matches in it marked."""
    scope_of = {generation.source_id: scope for scope in scopes for generation in scope.generations}
    used = [scope_of[section.source_id] for section in sections]
    texts = [
        text_to_mark(section.content, _hints(scope.query, names))
        for section, scope in zip(sections, used, strict=True)
    ]
    return await store.mark_matches(
        connection,
        texts,
        [scope.config for scope in used],
        [scope.query.positive for scope in used],
        HEADLINE_OPTIONS,
    )


def _hints(query: TsQuery, names: Sequence[str]) -> list[str]:
    """How what matched is likely to begin."""
    return [*names, *(lexeme[: max(_HINT, len(lexeme) - 1)] for lexeme in query.lexemes)]


def _hit(hit: Ranked, section: FoundSection, marked: str, names: Sequence[str]) -> Hit:
    snippet = make_snippet(marked, names)
    anchor = f"#{quote(section.anchor, safe=_ANCHOR)}" if section.anchor else ""
    return Hit(
        url=f"{section.url}{anchor}",
        title=one_line(section.title or ""),
        heading=one_line(section.heading),
        snippet=snippet.text,
        highlights=snippet.highlights,
        score=round(hit.score, 6),
        source_id=section.source_id,
        document_id=section.document_id,
        section_id=section.section_id,
        generation=section.generation,
        fetched_at=section.fetched_at,
    )
