"""Snippets: the part of a section that shows best why it was found, and what in it matched.

Which words match is PostgreSQL's to say: it knows how each language inflects them. It gets short
plain texts and marks the matches with characters that these texts cannot hold.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from urllib.parse import quote

from forager.db.database import Connection
from forager.documents.search import store
from forager.documents.search.hit import FurtherSection, Hit
from forager.documents.search.score import Candidate
from forager.documents.search.store import FoundSection, Key
from forager.documents.search.tsquery import TsQuery

# PostgreSQL parses this text, which costs as much as indexing; larger sections are cut around
# the likeliest place before
MAX_TEXT = 1_000
LENGTH = 240
MAX_MARKS = 2_000
MAX_PLACES = 50

_OPEN, _CLOSE = "\x03", "\x04"
HEADLINE_OPTIONS = f'HighlightAll=true, StartSel="{_OPEN}", StopSel="{_CLOSE}"'
# between these two PostgreSQL sees tags of HTML, and finds no words in them
_LEFT, _RIGHT = "\x01", "\x02"
# between the title, the heading and the text of a section
_BETWEEN = "\x05"
_WORD_END = re.compile(r"\s")

Range = tuple[int, int]


def text_to_mark(content: str, hints: Sequence[str], heads: Sequence[str] = ()) -> str:
    """The part of a section worth looking at, in plain text; `hints` are beginnings of words.

    Heads are the heading and the title above it, which are shown where only they match.
    """
    # markup is removed between two cuts: one through a link would leave half of it
    text = plain_text(_cut(content, hints, 4 * MAX_TEXT))
    parts = (*(one_line(head)[:LENGTH] for head in heads), _cut(text, hints, MAX_TEXT))
    return _BETWEEN.join(parts).replace("<", _LEFT).replace(">", _RIGHT)


def make_snippet(marked: str, identifiers: Sequence[str]) -> tuple[str, tuple[Range, ...]]:
    """The best few lines of a marked text, and the highlights in it.

    Identifiers are highlighted as typed. A head that matches comes before a text that does not.
    """
    marked = marked.replace(_LEFT, "<").replace(_RIGHT, ">")
    *heads, body = (_highlighted(part, identifiers) for part in marked.split(_BETWEEN))
    text, ranges = body
    head = None if ranges else next((head for head in heads if head[1]), None)
    if head is not None:
        text, ranges = f"{head[0]}: {text}" if text else head[0], head[1]
    elif not text and heads:
        text = heads[0][0]
    kinds = [(a, b, text[a:b].casefold()) for a, b in ranges]
    start, end = _bounds(text, _best_start(kinds, LENGTH), LENGTH)
    shown = text[start:end].strip()
    # cutting at a space never leaves more than one on the left
    start = text.index(shown, start) if shown else start
    end = start + len(shown)
    before, after = "… " if start > 0 else "", " …" if end < len(text) else ""
    inside = [(max(a, start), min(b, end)) for a, b in ranges if a < end and b > start]
    shift = len(before) - start
    highlights = tuple((a + shift, b + shift) for a, b in inside)
    return f"{before}{shown}{after}", highlights


def _highlighted(marked: str, identifiers: Sequence[str]) -> tuple[str, list[Range]]:
    text, ranges = _read_marks(marked)
    return text, _merged([*ranges, *((a, b) for a, b, _ in _occurrences(text, identifiers))])


def _read_marks(marked: str) -> tuple[str, list[Range]]:
    """The text without its marks, and where they were."""
    parts: list[str] = []
    ranges: list[Range] = []
    length = 0
    for number, piece in enumerate(marked.split(_OPEN)):
        word, closed, rest = piece.partition(_CLOSE)
        if number and closed:
            ranges.append((length, length + len(word)))
        parts += (word, rest)
        length += len(word) + len(rest)
    return "".join(parts), ranges


def _occurrences(text: str, words: Iterable[str]) -> list[tuple[int, int, str]]:
    """The occurrences of any of the words, in any case; limited in number."""
    patterns = [re.escape(word) for word in sorted(set(words), key=len, reverse=True) if word]
    if not patterns:
        return []
    found = islice(re.finditer("|".join(patterns), text, re.IGNORECASE), MAX_MARKS)
    return [(match.start(), match.end(), match.group().casefold()) for match in found]


def _likely_places(text: str, hints: Iterable[str]) -> list[tuple[int, int, str]]:
    """The same in a long text: quick, and near enough where a letter changes length with its case.

    Only the first places of each word: a window is chosen by how many different words it has.
    """
    lower = text.lower()
    places: list[tuple[int, int, str]] = []
    for hint in {hint.lower() for hint in hints if hint}:
        at = lower.find(hint)
        for _ in range(MAX_PLACES):
            if at < 0:
                break
            places.append((at, at + len(hint), hint))
            at = lower.find(hint, at + len(hint))
    return sorted(places)


def _merged(ranges: Iterable[Range]) -> list[Range]:
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:
            merged.append((start, end))
    return merged


def _best_start(marks: Sequence[tuple[int, int, str]], width: int) -> int:
    """The start of the window with the most different matches."""
    best, best_start, first = 0, 0, 0
    inside: dict[str, int] = {}
    for _, end, kind in marks:
        inside[kind] = inside.get(kind, 0) + 1
        while marks[first][0] < end - width and marks[first][1] < end:
            gone = marks[first][2]
            inside[gone] -= 1
            if not inside[gone]:
                del inside[gone]
            first += 1
        if len(inside) > best:
            best, best_start = len(inside), marks[first][0]
    return best_start


def _cut(text: str, hints: Sequence[str], width: int) -> str:
    if len(text) <= width:
        return text
    # around the same place, whatever the width
    focus = _best_start(_likely_places(text, hints), MAX_TEXT // 2)
    start, end = _bounds(text, focus, width)
    return text[start:end]


def _bounds(text: str, focus: int, width: int) -> Range:
    """A window around a place, cut between words where there are any nearby."""
    start = max(0, min(focus - width // 6, len(text) - width))
    end = min(len(text), start + width)
    if start and (space := _WORD_END.search(text, start, start + 30)):
        start = min(space.end(), max(focus, start))
    if end < len(text) and (at := text.rfind(" ", max(start, end - 30), end)) > focus:
        end = at
    return start, end


# controls, and the marks that turn the direction of writing around
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufffe\uffff]"
)

# each part is bounded, so that no text is slow
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\]\([^()\s]{0,2000}(?:\s\"[^\"]{0,500}\")?\)")
_FENCE = re.compile(r"^[ \t]{0,20}(?:```|~~~)[^\n]{0,200}$", re.MULTILINE)
_LINE_MARK = re.compile(r"^(?:[ \t]{0,20}(?:#{1,6}|>|[-*+])(?=\s|\Z)){1,20}", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]{0,20}\|?[ \t:|-]{3,500}$", re.MULTILINE)
# with emphasis in it
_STRONG = re.compile(r"\*\*(?=\S)((?:[^*\n]|\*[^*\n]{1,100}\*){1,200})(?<=\S)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*\\])\*(?=[^\s*])([^*\n]{1,300})(?<=[^\s*\\])\*(?![\w*])")
# of a link that was cut
_CUT_LINK = re.compile(r"\*{0,3}!?\[(?:[^\[\]\n]{0,500}|[^\[\]]{0,500}\]\([^()\s]{0,2000})\Z")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~])")


def one_line(text: str) -> str:
    """A text on one line, without characters that are orders rather than text."""
    line = " ".join(text.split())
    # all control characters are unprintable: to look for that takes a tenth of the time
    return line if line.isprintable() else " ".join(_STEERING.sub(" ", line).split())


def plain_text(markdown: str) -> str:
    """The words of a markdown text on one line. HTML in it stays what it is: text."""
    text = _FENCE.sub("", markdown)
    if "[" in text:
        # twice: a link around an image
        text = _CUT_LINK.sub("", _LINK.sub(r"\1", _LINK.sub(r"\1", text)))
    text = _BREAK.sub(" ", _LINE_MARK.sub("", _TABLE_RULE.sub("", text)))
    if "*" in text:
        text = _EMPHASIS.sub(r"\1", _STRONG.sub(r"\1", text))
    text = text.replace("`", "").replace("|", " ")
    return one_line(_ESCAPE.sub(r"\1", text))


# further sections of a page that are listed
MAX_SECTIONS = 5
# shorter lexemes are not compared without their endings
_HINT = 4
# characters of a fragment that need no escape (RFC 3986); `%` for those that are escaped
_ANCHOR = "!$&'()*+,;=:@/?%-._~"

_PARTS = re.compile(r"\.|::|->|#")


def by_page(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """The sections of each page, best first; pages in the order of their best sections."""
    pages: dict[int, list[Candidate]] = {}
    for candidate in candidates:
        pages.setdefault(candidate.document_id, []).append(candidate)
    return list(pages.values())


def facets_of(pages: Sequence[Sequence[Candidate]]) -> dict[str, dict[str, int]]:
    """The numbers of pages by source, language and kind."""
    languages = Counter(page[0].place.language for page in pages)
    kinds = Counter("definition" for page in pages if any(page[0].defines))
    kinds.update("listing" for page in pages if page[0].is_listing)
    return {
        "source": dict(Counter(page[0].place.source_id for page in pages).most_common()),
        "language": {name: count for name, count in languages.most_common() if name},
        "kind": dict(kinds),
    }


async def hits_of(
    connection: Connection, pages: Sequence[Sequence[Candidate]], generations: Sequence[int]
) -> list[Hit]:
    """The found pages with their sections and snippets."""
    shown = [page[: MAX_SECTIONS + 1] for page in pages]
    keys = [(each.document_id, each.position) for page in shown for each in page]
    if not keys:
        return []
    sections = await store.select_sections(connection, keys, generations)
    marked = await _mark(connection, [page[0] for page in pages], sections)
    return [
        _hit(page, len(all_) - 1, sections, text)
        for page, all_, text in zip(shown, pages, marked, strict=True)
    ]


async def _mark(
    connection: Connection, candidates: Sequence[Candidate], sections: Mapping[Key, FoundSection]
) -> list[str]:
    """The part of each section that is worth showing, with what matches in it marked."""
    texts = [
        text_to_mark(section.content, _hints(each.query), (section.heading, section.title or ""))
        for each in candidates
        for section in (sections[each.document_id, each.position],)
    ]
    return await store.mark_matches(
        connection,
        texts,
        [each.config for each in candidates],
        [each.query.positive for each in candidates],
        HEADLINE_OPTIONS,
    )


def _hints(query: TsQuery) -> list[str]:
    """Likely beginnings of the words that matched."""
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
    snippet, highlights = make_snippet(marked, _names(best.query))
    terms = zip(best.query.terms, best.ranks, best.heads, strict=True)
    return Hit(
        url=_address(section),
        title=one_line(section.title or ""),
        heading=one_line(section.heading),
        snippet=snippet,
        highlights=highlights,
        score=round(best.score, 6),
        source_id=section.source_id,
        document_id=section.document_id,
        section_id=section.section_id,
        generation=section.generation,
        fetched_at=section.fetched_at,
        language=section.language,
        missing=tuple(term.text for term, rank, head in terms if not rank and not head),
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
