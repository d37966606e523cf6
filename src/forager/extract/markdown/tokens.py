"""A serialized element as a flat list of tags and texts.

The parser serializes its tree in C, and one regular expression splits the result. This is several
times faster than visiting every node from Python, and has no limit of nesting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from forager.extract.content.boilerplate import HEADINGS, ElementVerdict
from forager.extract.content.themes import BODY, MAIN
from forager.extract.markdown.tags import RAW_TEXT, Shape, Tag, read_tags, unescape
from forager.extract.text import collapse, name_set

# lexbor escapes < and > in texts and attributes
_TAG = re.compile(r"<(/?[a-zA-Z][^>]*)>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# elements in which `<` does not begin a tag
_RAW = re.compile(r"<(script|style|iframe|noembed|noframes)(?=[\s>])[^>]*>.*?</\1>", re.DOTALL)
_RAW_CODE = re.compile(r"<(xmp|plaintext|listing)(?=[\s>])[^>]*>(.*?)</\1>", re.DOTALL)


@dataclass(slots=True)
class Tokens:
    """texts[i] stands before tags[i]; closing[i] is the index of the end tag of tags[i]."""

    texts: list[str]
    tags: list[Tag]
    closing: list[int]
    # tables with other tables or headings in them: they lay out a page, and have no data
    layout_tables: set[int] = field(default_factory=set)
    # elements around a certain main element: they are not dropped, whatever their names
    shielded: set[int] = field(default_factory=set)
    marked: list[int] = field(default_factory=list)  # elements that are not simply kept
    titles: list[int] = field(default_factory=list)  # h1
    headings: list[int] = field(default_factory=list)
    captions: list[int] = field(default_factory=list)  # elements with the class of a title
    ranked: list[int] = field(default_factory=list)  # elements that may be the main one
    # how many more tags may be read to find boilerplate: nested elements with names of boilerplate
    # could cost the square of the page
    removal_budget: int = 0
    extent: int = 0  # the number of tags: of the page, and then of the main element
    # class names are ignored: they would have removed too much
    lenient: bool = False
    link_shares: dict[int, float] = field(default_factory=dict)  # of the text of elements
    removed: dict[int, str] = field(default_factory=dict)  # elements that were left out, and why
    # parts of code that were left out, by its element and the reason
    cut: dict[tuple[int, str], str] = field(default_factory=dict)
    _heading_ids: frozenset[str] | None = None
    _ids: frozenset[str] | None = None
    _parents: list[int] = field(default_factory=list)

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all elements."""
        if self._ids is None:
            self._ids = frozenset(
                [tag.attributes["id"] for tag in self.tags if "id" in tag.attributes]
            )
        return self._ids

    @property
    def heading_ids(self) -> frozenset[str]:
        """The ids by which links lead to the headings of the page."""
        if self._heading_ids is None:
            found = (first_id(self, index) for index in self.headings)
            self._heading_ids = frozenset(filter(None, found))
        return self._heading_ids

    def parent_of(self, index: int) -> int:
        """The index of the element around another one; 0 for the outermost."""
        if not self._parents:
            self._parents = _parents(self.closing)
        return self._parents[index]

    def kept_text(self, start: int, end: int) -> str:
        """The text between two tags, still escaped, without what is hidden or never text.

        A class such as "nav" may color a word of code, so it does not count here.
        """
        parts = []
        index = start + 1
        while index <= end:
            parts.append(self.texts[index])
            tag = self.tags[index]
            if (
                index < end
                and tag.verdict is not ElementVerdict.KEEP
                and tag.verdict in _NEVER_CODE
            ):
                self.removed.setdefault(index, tag.verdict.value)
                index = self.closing[index]
            elif tag.name in ("br", "/p", "/div", "/li"):
                parts.append(" ")
            elif tag.name == "sup" and index < end and is_exponent(self, index):
                parts.append("^")
            index += 1
        return "".join(parts)


_EXPONENT = re.compile(r"[-+\u2212\u2013]?(?:\d{1,4}|[nmkij])(?:[-+\u2212\u2013]\d{1,4})?")


def is_exponent(tokens: Tokens, index: int) -> bool:
    """Whether a `<sup>` without a link is a number or an index after a number, a name or `)`."""
    end = tokens.closing[index]
    before = tokens.texts[index] or (tokens.texts[index - 1] if index else "")
    if not (before[-1:].isalnum() or before[-1:] == ")") or end - index > 3:
        return False
    if any(tag.name == "a" for tag in tokens.tags[index + 1 : end]):
        return False
    return _EXPONENT.fullmatch("".join(tokens.texts[index + 1 : end + 1]).strip()) is not None


_INLINE = name_set(
    "a abbr acronym b bdi bdo big cite code del dfn em font i img ins kbd label mark math q s"
    " samp small span strike strong sub sup tt u var wbr"
)
_INLINE |= frozenset(f"/{name}" for name in _INLINE)


def spaced_text(tokens: Tokens, start: int, end: int) -> str:
    """The text between two tags as a reader sees it: with blanks between blocks."""
    parts = []
    ends = set()  # of buttons and the like inside a line
    for index in range(start, end):
        tag = tokens.tags[index]
        if tag.verdict is not ElementVerdict.KEEP:
            ends.add(tokens.closing[index])
        if tag.name not in _INLINE or tag.verdict is not ElementVerdict.KEEP or index in ends:
            parts.append(" ")
        parts.append(tokens.texts[index + 1])
    return collapse(unescape("".join(parts)))


_NEVER_CODE = frozenset({ElementVerdict.NEVER, ElementVerdict.HIDDEN, ElementVerdict.REPEATED})
_NEAR = 4  # tags before a heading that may have its id


def first_id(tokens: Tokens, heading: int) -> str | None:
    """The id of a heading: its own, that of an element in it, or of one just before it."""
    inside = range(heading, tokens.closing[heading])
    before = range(heading - 1, max(-1, heading - 1 - _NEAR), -1)
    for index in (*inside, *before):
        attributes = tokens.tags[index].attributes
        found: str | None = attributes.get("id") or attributes.get("name")
        if found:
            return found
        if index < heading and tokens.texts[index + 1].strip():
            return None
    return None


def tokenize(html: str) -> Tokens:
    """The tokens of one serialized element."""
    if "<!--" in html:
        html = _COMMENT.sub("", html)
    tokens = _split(html)
    if any(tokens.tags[index].name in RAW_TEXT for index in tokens.marked):
        tokens = _split(_RAW_CODE.sub(_as_pre, _RAW.sub("", html)))
    return tokens


def _split(html: str) -> Tokens:
    pieces = _TAG.split(html)
    tags = read_tags(pieces[1::2])
    count = len(tags)
    tokens = Tokens(pieces[0::2], tags, list(range(count)), extent=count, removal_budget=20 * count)
    _pair(tokens)
    return tokens


def _pair(tokens: Tokens) -> None:
    tags, closing = tokens.tags, tokens.closing
    end, void, special = Shape.END, Shape.VOID, Shape.SPECIAL  # looked up once, not per tag
    open_elements: list[int] = []
    tables: list[int] = []
    for index, tag in enumerate(tags):
        shape = tag.shape
        if shape is end:
            if open_elements and tags[open_elements[-1]].end == tag.name:
                closing[open_elements.pop()] = index
        elif shape is not void:
            open_elements.append(index)
            if shape is special:
                _register(tokens, index, tag, open_elements, tables)
    for index in open_elements:  # only of markup that was cut
        closing[index] = len(tags) - 1


def _parents(closing: list[int]) -> list[int]:
    """The index of the element around each tag, found in one walk."""
    parents: list[int] = []
    open_elements: list[int] = []
    for index, end in enumerate(closing):
        while open_elements and closing[open_elements[-1]] <= index:
            open_elements.pop()
        parents.append(open_elements[-1] if open_elements else 0)
        if end > index:
            open_elements.append(index)
    return parents


def _register(
    tokens: Tokens, index: int, tag: Tag, open_elements: list[int], tables: list[int]
) -> None:
    if tag.verdict is not ElementVerdict.KEEP:
        tokens.marked.append(index)
    if tag.rank:
        tokens.ranked.append(index)
        if tag.rank >= MAIN and tag.rank != BODY:
            _shield(open_elements, tokens.shielded)
    if tag.heading:
        tokens.headings.append(index)
        if tag.name == "h1":
            tokens.titles.append(index)
    elif tag.is_title:
        tokens.captions.append(index)
    if tag.name == "table" or tag.name in HEADINGS:
        while tables and tokens.closing[tables[-1]] != tables[-1]:
            tables.pop()  # closed meanwhile
        tokens.layout_tables.update(tables[-1:])
        if tag.name == "table":
            tables.append(index)


def _shield(open_elements: list[int], shielded: set[int]) -> None:
    for index in reversed(open_elements):
        if index in shielded:  # and so are all elements around it
            return
        shielded.add(index)


def _as_pre(match: re.Match[str]) -> str:
    code = match[2]
    if match[1] != "listing":
        code = code.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<pre>{code}</pre>"
