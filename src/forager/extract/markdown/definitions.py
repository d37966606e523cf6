"""Paragraphs, and definitions: the terms of lists and other signatures that begin parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from forager.extract.content.boilerplate import is_boilerplate_phrase, is_copyright
from forager.extract.markdown.blocks import Blocks, HeadedText
from forager.extract.markdown.escape import code_span, code_text, escape_text, fence
from forager.extract.markdown.headings import PERMALINK, HeadingText, read_heading
from forager.extract.markdown.phrasing import Links, Phrasing
from forager.extract.markdown.tags import Tag
from forager.extract.markdown.tokens import Tokens
from forager.extract.text import collapse, name_set

MAX_HEADING_LENGTH = 1_000
MAX_MARKDOWN_HEADING = 4_000


class Definitions(Phrasing):
    """Collects paragraphs and definitions; a converter adds all other blocks."""

    def __init__(
        self,
        tokens: Tokens,
        links: Links,
        *,
        cell: bool = False,
        phrases: bool = True,
        language: str = "",
    ) -> None:
        super().__init__(tokens, links)
        self.blocks = Blocks()
        self.truncated: dict[str, None] = {}
        self.dropped: list[str] = []  # blocks that were left out as boilerplate phrases
        self._cell = cell
        self._default_language = language  # of code that names none
        self._phrases = phrases
        self._lists: list[int | None] = []  # the next number of ordered lists
        self._languages: list[tuple[int, str]] = []  # end of the wrapper, language of its code
        self._terms: list[_Terms] = []  # the lists of definitions that are open
        self._declared: dict[int, _Declared] = {}  # other definitions, by the element around them
        self._owners: list[DefinitionOwner] = []  # articles and sections that are open

    @property
    def all_truncated(self) -> list[str]:
        """Descriptions of everything that was cut short."""
        dropped = self._links.dropped
        cut = [f"links: {dropped} beyond the limit are plain text"] if dropped else []
        return [*self.truncated, *cut]

    def _flush(self) -> None:
        """End the paragraph, if there is one."""
        if not self._parts:
            return
        if self._in_heading:
            self._parts.append(" ")
            return
        lines = self._take_lines()
        if len(lines) == 1 and not self._cell and self._is_boilerplate(lines[0]):
            self.dropped.append(lines[0])
            return
        if lines and (len(lines) > 1 or lines[0].strip(_SEPARATORS)):
            self.blocks.add("  \n".join(lines))

    def _is_boilerplate(self, line: str) -> bool:
        if not self._phrases:
            return False
        is_name = bool(self.blocks.containers) or line.startswith("**")
        if not is_boilerplate_phrase(line, one_word=not is_name):
            return False
        part = self.blocks.part  # a section about copyright begins with it
        return not (part.level and not part.blocks and is_copyright(line))

    def term_list(self, index: int, tag: Tag) -> int:
        self._flush()
        blocks = self.blocks
        end = self._tokens.closing[index]
        terms = _Terms(blocks.part, blocks.level, tag.attributes.get("class", ""), end)
        self._terms.append(terms)
        self._ends[end] = self._close_terms
        return index + 1

    def _close_terms(self) -> None:
        self._flush()
        terms = self._terms.pop()
        if terms.defined:
            self.blocks.resume(terms.part)

    def term(self, index: int, tag: Tag) -> int:
        self._flush()
        end = self._tokens.closing[index]
        terms = self._terms[-1] if self._terms else None
        may_define = terms is not None and (
            terms.defined
            or bool(tag.attributes.get("id"))
            or may_be_definition(self._tokens, index)
        )
        if terms and may_define and not self._cell and not self.blocks.in_quote:
            head_end = first_block(self._tokens, index)
            heading = self._read_heading(index, head_end)
            after = terms.defined
            if is_definition(self._tokens, index, heading, terms.classes, after_another=after):
                return self._define(index, head_end, heading, terms)
        if "sig" not in tag.attributes.get("class", "").split():
            return self._open_title(index)
        if text := self._kept(index, end):  # another signature of the same definition
            self.blocks.add(code_span(text))
        return end + 1

    def _read_heading(self, index: int, end: int) -> HeadingText:
        heading = read_heading(self._tokens, index, end)
        self._tokens.removed.update(dict.fromkeys(heading.skipped, PERMALINK))
        return heading

    def _define(self, index: int, end: int, heading: HeadingText, terms: _Terms) -> int:
        """Begin the section of a term whose heading ends before a tag."""
        terms.defined = True
        anchor = self._tokens.tags[index].attributes.get("id") or heading.anchor or self._anchor
        anchor = anchor or wrapper_id(self._tokens, index)
        self._anchor = None
        code = self._long_code(index, heading)
        markdown = signature(self._tokens, index, end, heading.text)
        level = min(6, terms.level + 1)
        if terms.owner in self._owners:
            self._owners.remove(terms.owner)
        terms.owner = DefinitionOwner(index, terms.end, level, defines=True)
        self._owners.append(terms.owner)
        self._end_heading(HeadedText(level, heading.text, markdown, anchor, start=index))
        if code:
            self.blocks.add(fence(code, ""))
        if end == self._tokens.closing[index]:
            return end + 1
        self._skip_text(end, until=self._tokens.closing[index])
        return end

    def _skip_text(self, index: int, until: int) -> None:
        """Hide the text before a tag, which the heading has, until an element ends."""
        texts = self._tokens.texts
        text, texts[index] = texts[index], ""
        close = self._ends.get(until)

        def show() -> None:
            texts[index] = text
            if close:
                close()
            self._flush()

        self._ends[until] = show

    def _long_code(self, index: int, heading: HeadingText) -> str:
        """The code of a term that is too long for a heading, which gets its first line."""
        if len(heading.text) <= MAX_TERM or self._tokens.tags[index + 1].name != "pre":
            return ""
        code = code_text(self._tokens, index + 1, self._tokens.closing[index + 1])
        heading.text = collapse(code.lstrip().partition("\n")[0])[:MAX_TERM]
        return code

    def _declare(self, index: int, tag: Tag) -> int:
        """Begin the section of a definition that is no term of a list; 0 without an anchor."""
        tokens, blocks = self._tokens, self.blocks
        end = tokens.closing[index]
        if self._cell or blocks.in_quote or self._in_heading or not is_declaration(tokens, index):
            return 0
        heading = self._read_heading(index, end)
        if not 0 < len(heading.text) <= MAX_HEADING_LENGTH:
            return 0
        anchor, whole = self._place_of(index, tag, heading)
        known = self._declared.get(whole)
        if known is not None and anchor in (None, known.anchor):
            blocks.add(code_span(heading.text))  # another signature of the same definition
            return end + 1
        if anchor is None:
            return 0
        if known is None:
            known = self._declared[whole] = _Declared(blocks.part, blocks.level)
            self._resume_after(whole, known.part)
        elif known.is_left(blocks.part.continues or blocks.part):
            known.part, known.level = blocks.part, blocks.level
        known.anchor, self._anchor = anchor, None
        level = min(6, known.level + 1)
        markdown = code_span(heading.text)
        label = (
            blocks.take_label(tokens.parent_of(index)) if whole < tokens.parent_of(index) else ""
        )
        known.last = HeadedText(level, heading.text, markdown, anchor, start=index)
        self._end_heading(known.last)
        if label:
            blocks.add(label)
        return end + 1

    def _place_of(self, index: int, tag: Tag, heading: HeadingText) -> tuple[str | None, int]:
        """The anchor of a signature, and the element that holds the definition."""
        whole = self._tokens.parent_of(index)
        anchor = tag.attributes.get("id") or heading.inner
        if anchor or (anchor := anchor_before(self._tokens, index, heading.permalink)):
            return anchor, owner_of(self._tokens, index)
        if around := id_around(self._tokens, index):
            return around
        if whole not in self._declared:
            whole = self._tokens.parent_of(whole)
        return heading.permalink, whole

    def _resume_after(self, index: int, part: HeadedText) -> None:
        """Continue a part when an element has ended."""
        end = self._tokens.closing[index]
        close = self._ends.get(end)

        def resume() -> None:
            self._flush()
            if close:
                close()
            self.blocks.resume(part)

        self._ends[end] = resume

    def _open_title(self, index: int) -> int:
        end = self._tokens.closing[index]
        following = self._open_inline(index, "**")
        if following > end:  # nothing but text
            self._flush()
            return following
        close = self._ends.get(end)

        def close_title() -> None:
            if close:
                close()
            self._flush()

        self._ends[end] = close_title
        return following

    def _end_heading(self, part: HeadedText) -> None:
        part.heading = part.heading or part.markdown_heading
        if len(part.heading) > MAX_HEADING_LENGTH:
            self.truncated["heading: longer than its limit"] = None
            part.heading = part.heading[:MAX_HEADING_LENGTH]
        if len(part.markdown_heading) > MAX_MARKDOWN_HEADING:
            part.markdown_heading = escape_text(part.heading)
        if not part.heading:
            self._anchor = part.anchor
        elif self._cell:
            self.blocks.add(f"**{part.markdown_heading}**")
        elif self.blocks.in_quote:
            self.blocks.add(f"{'#' * part.level} {part.markdown_heading}")
        else:
            self.blocks.begin_part(part)


@dataclass(slots=True)
class _Terms:
    """An open list of terms."""

    part: HeadedText  # the part around it
    level: int
    classes: str
    end: int
    owner: DefinitionOwner | None = None  # the last definition
    defined: bool = False  # it has definitions, each of which is a part


@dataclass(slots=True)
class _Declared:
    """Definitions in one element."""

    part: HeadedText  # the part around them
    level: int
    anchor: str | None = None  # of the last one
    last: HeadedText | None = None

    def is_left(self, part: HeadedText) -> bool:
        """Whether a heading came between the last definition and the current part."""
        return part is not self.part and part is not self.last


@dataclass(slots=True)
class DefinitionOwner:
    """An open article, section or definition: no heading in it is above its title."""

    start: int
    end: int
    level: int = 0  # of its title; 1 if it has none
    defines: bool = False  # it is a term of a list
    nests: bool = False  # it is a part of a manual
    shift: int = 0  # by which the headings of such a part are deeper than the page writes them


_SEPARATORS = ",; "  # what is left of a list whose links were left out
_MAX_TAGS = 400  # of a declaration
_MAX_SOURCE = 8 * MAX_HEADING_LENGTH  # characters of a declaration with those between its tags
_NEAR = 8  # tags before a signature among which the element around it begins
MAX_TERM = 300  # characters; a longer entry is a paragraph, unless it is a signature
_CALL = re.compile(r"[\w.:$@~]+\(.*\)(?: ?(?:->|:|→|=).*)?")
_OPTION = re.compile(r"--?[A-Za-z0-9?][\w-]*+(?:[\s=,\[|/]|$)")
# footnotes have anchors too
_NOTES = re.compile(r"footnote|citation|reference|bibliograph|field-list|option-list-notes")
_LETTER = re.compile(r"[^\W\d_]|[-$<@%_]")
_CODE = frozenset({"code", "tt", "kbd", "samp", "var", "pre"})
# in a declaration, the name stands in one of these, and none of the blocks is in it
_NAMED = _CODE | {"a", "span", "strong", "b", "em", "i"}
_BOXES = name_set("blockquote td tr tbody table p")
_DESCRIPTIONS = name_set("div p ul ol table blockquote")
_BLOCKS = name_set("h1 h2 h3 h4 h5 h6 p pre table img figure blockquote ul dl")


def first_block(tokens: Tokens, start: int) -> int:
    """The end of a term, or the first block in it after some text: a description of the term."""
    end = tokens.closing[start]
    for index in range(start + 1, end):
        if tokens.tags[index].name in _DESCRIPTIONS:
            has_text = any(map(str.strip, tokens.texts[start + 1 : index + 1]))
            return index if has_text else end
    return end


def may_be_definition(tokens: Tokens, start: int) -> bool:
    """Whether a term without an id is worth reading: it holds an anchor, or begins as an option."""
    end = tokens.closing[start]
    if wrapper_id(tokens, start):
        return True
    for tag in tokens.tags[start + 1 : end]:
        names = tag.attributes
        if names and ("id" in names or "name" in names or names.get("href", "")[:1] == "#"):
            return True
    text = "".join(tokens.texts[start + 1 : end + 1]).lstrip()
    return text[:1] == "-" or not text[:1].isascii()


def wrapper_id(tokens: Tokens, start: int) -> str | None:
    """The id of the `div` that groups a term with its descriptions."""
    before = tokens.tags[start - 1]
    return before.attributes.get("id") if before.name == "div" else None


def is_definition(
    tokens: Tokens, start: int, heading: HeadingText, list_classes: str, *, after_another: bool
) -> bool:
    """Whether a term is a definition to link to and to search for: by an anchor, or as an option.

    In a list with such a term, the following terms are definitions too, or they would belong to it.
    """
    text, tag = heading.text, tokens.tags[start]
    if not _LETTER.search(text) or _NOTES.search(list_classes.lower()):
        return False
    anchored = bool(tag.attributes.get("id") or heading.anchor or wrapper_id(tokens, start))
    if is_signature(tag) or (anchored and tokens.tags[start + 1].name == "pre"):
        return anchored
    if len(text) > MAX_TERM:
        return False
    return anchored or after_another or _OPTION.match(text) is not None


def is_signature(tag: Tag) -> bool:
    return "sig" in tag.attributes.get("class", "").split()


def signature(tokens: Tokens, start: int, end: int, text: str) -> str:
    """The term as the markdown of a heading: code where the page says that it is code."""
    is_code = is_signature(tokens.tags[start]) or any(
        tag.name in _CODE for tag in tokens.tags[start + 1 : min(end, start + 4)]
    )
    is_code = is_code or _OPTION.match(text) is not None or _CALL.fullmatch(text) is not None
    return code_span(text) if is_code else escape_text(text)


def is_declaration(tokens: Tokens, start: int) -> bool:
    """Whether an element with the name of a signature is one, and no box or closing of a letter."""
    end = tokens.closing[start]
    # elements inside of each other could cost the square of the page
    if end - start > _MAX_TAGS or sum(map(len, tokens.texts[start + 1 : end])) > _MAX_SOURCE:
        return False
    names = {tag.name for tag in tokens.tags[start + 1 : end]}
    return names.isdisjoint(_BLOCKS) and not names.isdisjoint(_NAMED)


def owner_of(tokens: Tokens, start: int) -> int:
    """The element with a definition and its text: around all boxes that only hold the signature."""
    inner, around = start, tokens.parent_of(start)
    while around and around != inner:
        end = tokens.closing[inner]
        after = tokens.texts[end + 1 : min(tokens.closing[around], end + _MAX_TAGS) + 1]
        if tokens.tags[around].name not in _BOXES and any(map(str.strip, after)):
            break
        inner, around = around, tokens.parent_of(around)
    return around


def anchor_before(tokens: Tokens, start: int, name: str | None) -> str | None:
    """The target of a permalink if an anchor right before the signature has that name."""
    for at in range(start - 1, max(-1, start - 1 - _NEAR), -1):
        if name is None or tokens.texts[at + 1].strip():
            return None
        if tokens.tags[at].anchor == name:
            return name
    return None


def id_around(tokens: Tokens, start: int) -> tuple[str, int] | None:
    """The id of the nearest element that begins with this one, and its index."""
    for at in range(start - 1, max(-1, start - 1 - _NEAR), -1):
        if tokens.texts[at + 1].strip():
            return None
        if tokens.closing[at] > start and (found := tokens.tags[at].attributes.get("id")):
            return found, at
    return None
