"""Blocks that are on most pages of a source at the same place, and therefore not content.

A sample of pages shows which blocks repeat. A block is identified by its place (the names of the
elements around it, without ids of sections and classes of states) and by its text and images.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any

from forager.extract.content.boilerplate import ElementVerdict
from forager.extract.content.removal import is_link_list
from forager.extract.markdown.tags import Shape, Tag
from forager.extract.markdown.tokens import Tokens, spaced_text
from forager.extract.text import collapse, name_set

_MIN_PAGES = 10  # of a sample from which anything can be learned
_MAX_LEARNED = 2_000  # blocks and lists of a source
_MAX_LINKS = 1_000  # link texts of one list
_MAX_BLOCKS = 1_500  # of one page
_MAX_TEXT = 20_000  # characters of a block
_MAX_READ = 2_000_000  # characters of one page's blocks, counted again for blocks inside of blocks
_MAX_PATH = 1_000  # characters of a place
_SHARE = 0.5  # of the sample that has a block
_LINKS_SHARE = 0.25  # of the sample that has a block of links; of a list's pages that have a link
_NEARLY_ALL = 0.9
_MOST = 0.7
_LABEL = 40  # characters: shorter text may name what follows it, as "Parameters" and "Returns" do
_MENU = 5  # links of a list that may have headings
_MAX_HEADING_TAGS = 100
HEADING_END = "heading"  # used as a place: the end of headings
_BLOCKS = name_set(
    "address aside blockquote center details dir div dl fieldset figure footer form header img li"
    " nav ol p section table ul"
)


@dataclass(frozen=True)
class RepeatedBlocks:
    """The blocks that most pages of a source share. Places, texts and links are hashes."""

    pages: int = 0  # in the sample
    elements: frozenset[str] = frozenset()  # the tags of such blocks (`Tag.place`)
    blocks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # place, text: pages
    # place: links; a list at such a place is repeated, even if some of its links differ
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """A version of the removed blocks; empty if there are none."""
        if not self.elements:
            return ""
        blocks = sorted(f"{place} {text}" for place in self.blocks for text in self.blocks[place])
        lists = sorted(f"{place} {link}" for place in self.lists for link in self.lists[place])
        return _hash("\n".join([*blocks, *lists]))[:8]

    def as_json(self) -> dict[str, Any]:
        learned = {"elements": sorted(self.elements), "blocks": self.blocks, "lists": self.lists}
        return {"pages": self.pages, "digest": self.digest, **learned}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RepeatedBlocks:
        elements = frozenset(value["elements"])
        return cls(value["pages"], elements, value["blocks"], value["lists"])


NOTHING_REPEATED = RepeatedBlocks()


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page of the sample."""

    element: str
    place: str
    text: str
    links: tuple[str, ...]
    is_list: bool  # hardly anything but links
    is_near_list: bool  # or nearly so, and without the title of the page
    is_kept: bool  # may be content however often it is repeated


def blocks_of(tokens: Tokens) -> list[Block]:
    """The blocks of a page of the sample."""
    reader = _Reader(tokens)
    found: list[Block] = []
    places = [index for index, tag in enumerate(tokens.tags) if tag.name in _BLOCKS]
    if len(places) > _MAX_BLOCKS:  # repeated blocks are at the beginning and at the end
        places = places[: _MAX_BLOCKS // 2] + places[-_MAX_BLOCKS // 2 :]
    for index, path in zip(places, _paths(tokens, places), strict=True):
        tag = tokens.tags[index]
        if text := reader.text_of(index):
            links, is_near_list = reader.links_of(index)
            is_list = bool(links) and is_link_list(tokens, index, tokens.closing[index])
            is_kept = _is_kept(tokens, index, text, len(links) if is_list else 0)
            found.append(
                Block(tag.place, _place(path), _hash(text), links, is_list, is_near_list, is_kept)
            )
    return found + _heading_ends(tokens)


def _heading_ends(tokens: Tokens) -> list[Block]:
    """The last element of most headings of a page, if it is the same with the same text."""
    ends = Counter(end[1] for index in tokens.headings if (end := _heading_end(tokens, index)))
    most, count = ends.most_common(1)[0] if ends else ("", 0)
    if count < max(2, _SHARE * len(tokens.headings)):
        return []
    return [Block("", HEADING_END, most, (), False, False, False)]


def _heading_end(tokens: Tokens, heading: int) -> tuple[int, str] | None:
    """The last element of a heading, if there is text before it: its index and its hash."""
    end = tokens.closing[heading]
    if tokens.texts[end].strip():
        return None
    inside = range(heading + 1, min(end - 1, heading + _MAX_HEADING_TAGS))
    start = next((index for index in inside if tokens.closing[index] == end - 1), None)
    if start is None or not any(map(str.strip, tokens.texts[heading + 1 : start + 1])):
        return None
    text = collapse("".join(tokens.texts[start + 1 : end]))
    tag = tokens.tags[start]
    return start, _hash(f"{tag.name}.{tag.attributes.get('class', '')} {text}")


def _is_kept(tokens: Tokens, index: int, text: str, links: int) -> bool:
    """Whether a block is a label of the following text, or has a heading and text below it."""
    at = bisect_left(tokens.headings, index)
    if at < len(tokens.headings) and tokens.headings[at] < tokens.closing[index]:
        return links < _MENU
    return len(text) < _LABEL and not text.startswith("![")


def learn(sample: Iterable[Sequence[Block]]) -> RepeatedBlocks:
    """The blocks that most pages of a sample share."""
    pages = 0
    on_pages: Counter[Block] = Counter()
    times: Counter[Block] = Counter()
    alone: dict[str, list[Block]] = {}  # places that a page has once
    places: Counter[str] = Counter()
    for blocks in sample:
        pages += 1
        on_pages.update(set(blocks))
        times.update(blocks)
        here = Counter(block.place for block in blocks)
        places.update(here.keys())
        for block in blocks:
            if here[block.place] == 1 and block.is_near_list:
                alone.setdefault(block.place, []).append(block)
    if pages < _MIN_PAGES:
        return RepeatedBlocks(pages)
    common = [b for b, count in on_pages.items() if _is_common(b, count, times[b], pages)]
    common.sort(key=lambda block: (-on_pages[block], block.place, block.text))
    del common[_MAX_LEARNED:]
    blocks_found: dict[str, dict[str, int]] = {}
    for block in common:
        blocks_found.setdefault(block.place, {})[block.text] = on_pages[block]
    lists = {
        place: links
        for place, found in alone.items()
        if len(found) >= max(_SHARE * pages, _NEARLY_ALL * places[place])
        and (links := _common_links(found))
    }
    elements = {block.element for block in common} | {alone[place][0].element for place in lists}
    return RepeatedBlocks(pages, frozenset(elements), blocks_found, lists)


def _is_common(block: Block, pages: int, times: int, all_pages: int) -> bool:
    if block.is_kept or (not block.is_list and pages < times and block.element[:4] != "img#"):
        return False
    share = _LINKS_SHARE if block.is_list and pages == times else _SHARE
    return pages >= share * all_pages


def _common_links(found: list[Block]) -> list[str]:
    """The links that a list has on many pages, if it has hardly any others."""
    counts = Counter(link for block in found for link in set(block.links))
    common = {link for link, n in counts.items() if n >= _LINKS_SHARE * len(found)}
    alike = sum(_holds_most(common, block.links) for block in found)
    return sorted(common)[:_MAX_LINKS] if alike >= _NEARLY_ALL * len(found) else []


def _holds_most(common: Collection[str], links: Sequence[str]) -> bool:
    return bool(links) and sum(link in common for link in links) >= _MOST * len(links)


def mark_repeated(tokens: Tokens, repeated: RepeatedBlocks) -> dict[int, int]:
    """Set the verdict of the outermost repeated blocks; return on how many pages each was.

    A list whose links are not all the same counts as on all pages.
    """
    reader = _Reader(tokens)
    found: dict[int, int] = {}
    end = -1
    elements = repeated.elements
    places = [index for index, tag in enumerate(tokens.tags) if tag.place in elements]
    for index, path in zip(places, _paths(tokens, places), strict=True):
        if index > end and (count := _pages_with(repeated, reader, index, _place(path))):
            found[index] = count
            end = tokens.closing[index]
            tag = tokens.tags[index]
            shape = tag.shape if tag.shape is Shape.VOID else Shape.SPECIAL
            tokens.tags[index] = replace(tag, verdict=ElementVerdict.REPEATED, shape=shape)
    if found:
        tokens.marked = sorted({*tokens.marked, *found})
    if HEADING_END in repeated.blocks:
        _mark_heading_ends(tokens, repeated.blocks[HEADING_END])
    return found


def _mark_heading_ends(tokens: Tokens, learned: Mapping[str, int]) -> None:
    for heading in tokens.headings:
        if (end := _heading_end(tokens, heading)) and end[1] in learned:
            tokens.tags[end[0]] = replace(tokens.tags[end[0]], verdict=ElementVerdict.REPEATED)


def _pages_with(repeated: RepeatedBlocks, reader: _Reader, index: int, place: str) -> int:
    texts, links = repeated.blocks.get(place), repeated.lists.get(place)
    if texts is None and links is None:
        return 0
    if texts and (text := reader.text_of(index)) and (count := texts.get(_hash(text))):
        return count
    if links is not None:
        own, is_list = reader.links_of(index)
        return repeated.pages if is_list and _holds_most(links, own) else 0
    return 0


def block_text(tokens: Tokens, index: int) -> str:
    """The text and images of a block."""
    end = tokens.closing[index]
    text = spaced_text(tokens, index, end)
    images = [_image(tag) for tag in tokens.tags[index : end + 1] if tag.name == "img"]
    return " ".join((text, *images)).strip()


class _Reader:
    """Texts and links of a page's blocks."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self._room = _MAX_READ

    def text_of(self, index: int) -> str:
        """The text and images of a block; empty for one that is too large."""
        tags = self.tokens.closing[index] - index
        if self._room < 0 or tags > _MAX_TEXT // 2:
            return ""
        text = block_text(self.tokens, index)
        self._room -= len(text) + tags
        return text if len(text) <= _MAX_TEXT else ""

    def links_of(self, index: int) -> tuple[tuple[str, ...], bool]:
        """The texts of a block's links, and whether it has hardly any other text and no title."""
        tokens = self.tokens
        links: list[str] = []
        end = tokens.closing[index]
        total = sum(len(text.strip()) for text in tokens.texts[index + 1 : end + 1])
        linked = 0
        at = index
        while at < end:
            tag = tokens.tags[at]
            if tag.name == "a" and "href" in tag.attributes:
                close = tokens.closing[at]
                text = collapse("".join(tokens.texts[at + 1 : close + 1]))
                linked += len(text)
                links.append(_hash(text))
                at = close
            at += 1
        self._room -= total
        is_list = bool(links) and linked >= _MOST * total and not self._has_title(index)
        return tuple(links), is_list

    def _has_title(self, index: int) -> bool:
        """Whether a block may have the heading of its page, which is another on every page."""
        headings, end = self.tokens.headings, self.tokens.closing[index]
        at = bisect_left(headings, index)
        return (
            at < len(headings)
            and headings[at] < end
            and (at == 0 or self.tokens.tags[headings[at]].name == "h1")
        )


def _paths(tokens: Tokens, indexes: Iterable[int]) -> Iterator[str]:
    """For elements in order, the places of each and of those around it, `_MAX_PATH` characters.

    Elements that end before the next of them are skipped, with everything in them.
    """
    tags, closing = tokens.tags, tokens.closing
    opened: list[tuple[int, str]] = [(len(tags), "")]  # end and path of the elements around
    at = 0
    for index in indexes:
        while opened[-1][0] < index:
            at = opened.pop()[0] + 1
        while at < index:
            end = closing[at]
            if end > index:
                opened.append((end, _joined(opened[-1][1], tags[at])))
            at = at + 1 if end > index else end + 1
        yield _joined(opened[-1][1], tags[index])


def _joined(path: str, tag: Tag) -> str:
    return f"{path}>{tag.place or tag.name}"[-_MAX_PATH:]


def _image(tag: Tag) -> str:
    return f"![{tag.attributes.get('alt', '')}]({tag.attributes.get('src', '').rpartition('/')[2]})"


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


@lru_cache(maxsize=1024)
def _place(path: str) -> str:
    """The hash of a path; the pages of a site have few different ones."""
    return _hash(path)
