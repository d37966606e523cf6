"""From ranked sections to hits: address, headings, and the lines that show why it was found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from forager.db.database import Connection
from forager.documents.search import store
from forager.documents.search.hit import FurtherSection, Hit
from forager.documents.search.score import Candidate
from forager.documents.search.snippets import HEADLINE_OPTIONS, make_snippet, one_line, text_to_mark
from forager.documents.search.store import FoundSection, SearchedGeneration
from forager.documents.search.tsquery import TsQuery

# further sections of a page that are listed
MAX_SECTIONS = 5
# a lexeme is at least so long before its end may be inflected away
_HINT = 4
# what a fragment may hold as it is (RFC 3986); a page may already have escaped the rest
_ANCHOR = "!$&'()*+,;=:@/?%-._~"

_PARTS = re.compile(r"\.|::|->|#")

Key = tuple[int, int]


def by_page(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """The sections of each page, best first; pages in the order of their best sections."""
    pages: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        pages.setdefault(candidate.document_id, []).append(candidate)
    return list(pages.values())


def facets_of(pages: Sequence[Sequence[Candidate]]) -> dict[str, dict[str, int]]:
    """How many pages there are in each language and of each kind."""
    languages = Counter(page[0].place.language for page in pages)
    kinds = Counter("definition" for page in pages if any(page[0].defines))
    kinds.update("listing" for page in pages if page[0].is_listing)
    return {
        "source": dict(Counter(page[0].place.source_id for page in pages).most_common()),
        "language": {name: count for name, count in languages.most_common() if name},
        "kind": dict(kinds),
    }


async def hits_of(
    connection: Connection,
    pages: Sequence[Sequence[Candidate]],
    generations: Sequence[SearchedGeneration],
) -> list[Hit]:
    shown = [page[: MAX_SECTIONS + 1] for page in pages]
    keys = [(each.document_id, each.position) for page in shown for each in page]
    if not keys:
        return []
    ids = [generation.id for generation in generations]
    sections = await store.select_sections(connection, keys, ids)
    marked = await _mark(connection, [page[0] for page in pages], sections)
    return [
        _hit(page, len(all_) - 1, sections, text)
        for page, all_, text in zip(shown, pages, marked, strict=True)
    ]


async def _mark(
    connection: Connection,
    candidates: Sequence[Candidate],
    sections: Mapping[Key, FoundSection],
) -> list[str]:
    """The part of each section that is worth showing, with what matches in it marked."""
    texts = [
        text_to_mark(sections[each.document_id, each.position].content, _hints(each.query))
        for each in candidates
    ]
    return await store.mark_matches(
        connection,
        texts,
        [each.config for each in candidates],
        [each.query.positive for each in candidates],
        HEADLINE_OPTIONS,
    )


def _hints(query: TsQuery) -> list[str]:
    """How what matched is likely to begin."""
    lexemes = (lexeme[: max(_HINT, len(lexeme) - 1)] for lexeme in query.lexemes)
    return [*_names(query), *lexemes]


def _names(query: TsQuery) -> list[str]:
    """Names as typed, and their last parts: texts say `gather` after `asyncio.gather`."""
    names = [term.text for term in query.terms if term.is_name]
    return [*names, *(part for name in names if len(part := _PARTS.split(name)[-1]) > 1)]


def _hit(
    page: Sequence[Candidate], more: int, sections: Mapping[Key, FoundSection], marked: str
) -> Hit:
    best, *others = page
    section = sections[best.document_id, best.position]
    snippet = make_snippet(marked, _names(best.query))
    terms = zip(best.query.terms, best.ranks, best.heads, strict=True)
    return Hit(
        url=_address(section),
        title=one_line(section.title or ""),
        heading=one_line(section.heading),
        snippet=snippet.text,
        highlights=snippet.highlights,
        score=round(best.score, 6),
        source_id=section.source_id,
        document_id=section.document_id,
        section_id=section.section_id,
        generation=section.generation,
        fetched_at=section.fetched_at,
        language=section.language,
        missing=()
        if best.is_similar
        else tuple(term.text for term, rank, head in terms if not rank and not head),
        sections=tuple(_further(sections[other.document_id, other.position]) for other in others),
        more_sections=more,
        repeats=best.repeats,
    )


def _further(section: FoundSection) -> FurtherSection:
    return FurtherSection(
        url=_address(section), heading=one_line(section.heading), section_id=section.section_id
    )


def _address(section: FoundSection) -> str:
    anchor = f"#{quote(section.anchor, safe=_ANCHOR)}" if section.anchor else ""
    return f"{section.url}{anchor}"
