"""Paragraphs, and definitions: the terms of lists and other signatures that begin parts."""

from __future__ import annotations

from dataclasses import dataclass

from forager.extract.content.boilerplate import is_boilerplate_phrase, is_copyright
from forager.extract.markdown.blocks import Blocks, HeadedText
from forager.extract.markdown.escape import code_span, code_text, escape_text, fence
from forager.extract.markdown.headings import PERMALINK, HeadingText, read_heading
from forager.extract.markdown.phrasing import Links, Phrasing
from forager.extract.markdown.signatures import (
    MAX_HEADING_LENGTH,
    MAX_TERM,
    anchor_before,
    first_block,
    id_around,
    is_declaration,
    is_definition,
    may_be_definition,
    owner_of,
    signature,
    wrapper_id,
)
from forager.extract.markdown.tags import Tag
from forager.extract.markdown.tokens import Tokens
from forager.extract.text import collapse

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
