"""Passages: the text of the sections that a search found, within a token budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from forager.documents.page import SectionRow
from forager.documents.search import Hit
from forager.extract.markdown.links import relative_links
from forager.extract.sections import CONTINUED
from forager.mcp.text import BYTES_PER_TOKEN, age, moment, one_line, size

# of the budget, for the hits whose text does not fit
SNIPPETS_SHARE = 0.15
# for what is around the passages: the fence, notes and hints
FRAME_TOKENS = 80
# bytes; less text than this answers nothing
LEAST_TEXT = 400
# bytes; a shorter section is shown with its parent and the sections after it
SHORT_SECTION = 600
OMITTED = "[…]"


@dataclass(slots=True)
class Budget:
    """Bytes that are left, and what was shown: no text is shown twice."""

    room: int
    shown: set[UUID] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def is_new(self, section: SectionRow) -> bool:
        return section.id not in self.shown and section.content not in self.texts

    def take(self, sections: Sequence[SectionRow]) -> None:
        self.shown |= {section.id for section in sections}
        self.texts |= {section.content for section in sections if section.content}


def passages(
    hits: Sequence[Hit], pages: Mapping[int, Sequence[SectionRow]], first: int, max_tokens: int
) -> list[str]:
    """Hits, best first: with their text while it fits, then with a snippet.

    A hit takes at most half of what is left, so that the best one has the most text and several
    can be compared.
    """
    total = max(1, max_tokens - FRAME_TOKENS) * BYTES_PER_TOKEN
    budget = Budget(int(total * (1 - SNIPPETS_SHARE)))
    shown: list[str] = []
    for number, hit in enumerate(hits, first):
        text = _passage(hit, pages.get(hit.document_id, ()), budget)
        if text is None:
            shown.append(_snippet(number, hit))
        elif text:
            shown.append("\n".join([*_title_lines(number, hit, pages), "", text, ""]))
            budget.room -= size(shown[-1])
    return _within(shown, total)


def _within(entries: Sequence[str], room: int) -> list[str]:
    """The entries that fit; a long one may be followed by one that does."""
    kept: list[str] = []
    for entry in entries:
        if size(entry) <= room or not kept:
            kept.append(entry)
            room -= size(entry)
    return kept


def _passage(hit: Hit, page: Sequence[SectionRow], budget: Budget) -> str | None:
    """The text for a hit; empty if it was shown already, None if there is no room for it."""
    at = next((at for at, section in enumerate(page) if section.id == hit.section_id), None)
    share = budget.room // 2
    if at is None or share < LEAST_TEXT:
        return None
    if not budget.is_new(page[at]):
        return ""
    if size(_text(page[at], hit)) > share:
        budget.take([page[at]])
        return _excerpt(page[at], hit, share)
    chosen = {at}
    room = share - size(_text(page[at], hit))
    budget.take([page[at]])
    for further in _helpful(hit, page, at):
        if further not in chosen and budget.is_new(page[further]):
            cost = size(_text(page[further], hit)) + 1
            if cost <= room:
                chosen.add(further)
                budget.take([page[further]])
                room -= cost
    return "\n\n".join(filter(None, (_text(page[each], hit) for each in sorted(chosen))))


def _helpful(hit: Hit, page: Sequence[SectionRow], at: int) -> Iterator[int]:
    """Sections to show beside a hit, most helpful first.

    Those below it, others of the page that match, and the surroundings of a short one.
    """
    family, end = {page[at].id}, at + 1
    while end < len(page) and page[end].parent_id in family:
        family.add(page[end].id)
        end += 1
    yield from range(at + 1, end)
    matching = {each.section_id for each in hit.sections}
    yield from (each for each, section in enumerate(page) if section.id in matching)
    if sum(size(section.content) for section in page[at:end]) < SHORT_SECTION:
        yield from (each for each in range(at) if page[each].id == page[at].parent_id)
        yield from (
            each for each in range(end, len(page)) if page[each].parent_id == page[at].parent_id
        )


def _text(section: SectionRow, hit: Hit) -> str:
    """A section as markdown; the heading of the hit's own section is in its title line."""
    parts = []
    if 0 < section.level < CONTINUED and section.id != hit.section_id:
        anchor = f" (#{section.anchor})" if section.anchor else ""
        parts.append(f"{'#' * section.level} {one_line(section.heading)}{anchor}")
    parts.append(relative_links(section.content.strip("\n"), hit.url))
    return "\n\n".join(filter(None, parts))


def _excerpt(section: SectionRow, hit: Hit, room: int) -> str:
    """The part of a long section around the paragraph with most of the words that matched."""
    words = {hit.snippet[start:end].casefold() for start, end in hit.highlights}
    blocks = list(_blocks(relative_links(section.content, hit.url)))
    scores = [sum(word in block.casefold() for word in words) for block in blocks]
    first = last = scores.index(max(scores))
    room -= size(blocks[first]) + 2 * size(OMITTED)
    if room < 0:
        return _cut(blocks[first], size(blocks[first]) + room)
    while last + 1 < len(blocks) and size(blocks[last + 1]) < room:
        last += 1
        room -= size(blocks[last]) + 1
    while first > 0 and size(blocks[first - 1]) < room:
        first -= 1
        room -= size(blocks[first]) + 1
    before = [OMITTED] if first else []
    after = [OMITTED] if last + 1 < len(blocks) else []
    return "\n\n".join([*before, *blocks[first : last + 1], *after])


def _cut(block: str, room: int) -> str:
    return block.encode()[: max(0, room)].decode(errors="ignore") + f"\n{OMITTED}"


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs; code between fences stays whole."""
    block = ""
    for part in text.strip("\n").split("\n\n"):
        block = f"{block}\n\n{part}" if block else part
        if block.count("```") % 2 == 0:
            yield block
            block = ""
    if block:
        yield block


def _title_lines(
    number: int, hit: Hit, pages: Mapping[int, Sequence[SectionRow]]
) -> tuple[str, ...]:
    """The path of headings to a section, and everything needed to cite it."""
    sections = {section.id: section for section in pages[hit.document_id]}
    path = [hit.heading]
    parent = sections[hit.section_id].parent_id
    while parent is not None:
        path.append(sections[parent].heading)
        parent = sections[parent].parent_id
    headings = dict.fromkeys(one_line(each) for each in (hit.title, *reversed(path)) if each)
    return _citation(number, " > ".join(headings), hit)


def _citation(number: int, title: str, hit: Hit) -> tuple[str, ...]:
    return (
        f"{number}. {title}",
        f"   {hit.url}",
        f"   source {hit.source_id}, generation {hit.generation},"
        f" fetched {moment(hit.fetched_at)} ({age(hit.fetched_at)})",
        *([f"   without: {one_line(', '.join(hit.missing))}"] if hit.missing else []),
    )


def _snippet(number: int, hit: Hit) -> str:
    title = " > ".join(dict.fromkeys(one_line(each) for each in (hit.title, hit.heading) if each))
    return "\n".join([*_citation(number, title, hit), f"   {one_line(hit.snippet)}"])
