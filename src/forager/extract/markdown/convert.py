"""Converts the tokens of a main element to parts of markdown, in one pass from left to right.

Only the cells of a table recurse, and they contain no table, so no page is nested too deep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from forager.extract.content.boilerplate import Verdict, is_boilerplate_phrase
from forager.extract.content.removal import is_contents_list, is_dropped
from forager.extract.markdown.blocks import Container, Part
from forager.extract.markdown.definitions import Definitions
from forager.extract.markdown.escape import code_span, code_text, fence, markdown_of
from forager.extract.markdown.headings import read_heading, visible
from forager.extract.markdown.table import MAX_CELLS, is_layout, read_table, render_table
from forager.extract.markdown.tags import (
    PLAIN,
    Attributes,
    Shape,
    Tag,
    Traits,
    language_of,
    traits_of,
)
from forager.extract.text import collapse, name_set

_KEEP = Verdict.KEEP
_END = Shape.END


class Converter(Definitions):
    """Converts a range of tokens; also used for the cells of tables."""

    # --- the loop ---------------------------------------------------------------------------

    def run(self, start: int, end: int) -> None:
        """Convert the tokens between two tags."""
        tokens, ends = self._tokens, self._ends
        texts, tags, parts = tokens.texts, tokens.tags, self._parts
        index = start + 1
        while index < end:
            if text := texts[index]:
                if text.isspace():
                    if parts:
                        parts.append(" ")
                else:
                    parts.append(markdown_of(text))
                    if not self._in_heading:
                        self._anchor = None
            tag = tags[index]
            if tag.shape is _END:
                if index in ends:
                    ends.pop(index)()
                elif parts and tag.name in _BLOCK_ENDS:
                    self._flush()
                index += 1
            elif tag.verdict is not _KEEP and self._drops(index):
                self.removed.append(index)
                index = tokens.closing[index] + 1
            elif action := _ACTIONS.get(tag.name):
                index = action(self, index, tag)
            else:
                index += 1
        self._add_text(texts[end])
        self._flush()

    def _drops(self, index: int) -> bool:
        if self._in_heading:
            return index in self._skipped
        return is_dropped(self._tokens, index)

    # --- blocks -----------------------------------------------------------------------------

    def block(self, index: int, tag: Tag) -> int:
        if self._parts:
            self._flush()
        traits = tag.traits
        if traits is None:
            traits = tag.traits = traits_of(tag.name, tag.attributes)
        return index + 1 if traits is PLAIN else self._special_block(index, tag, traits)

    def _special_block(self, index: int, tag: Tag, traits: Traits) -> int:
        attributes, end = tag.attributes, self._tokens.closing[index]
        if traits.heading:
            return self._open_heading(index, tag, traits.heading)
        if traits.signature and (following := self._declare(index, tag)):
            return following
        if traits.section and attributes.get("id"):
            self._anchor = attributes["id"]
        if traits.language is not None:
            self._languages.append((end, traits.language))
        if traits.admonition and (end - index) * 2 < self._tokens.extent:
            self._open_container(index, Container("> ", "> ", quote=True))
        return index + 1

    def _open_container(self, index: int, container: Container) -> None:
        self.blocks.open(container)
        self._ends[self._tokens.closing[index]] = self._close_container

    def _close_container(self) -> None:
        self._flush()
        self.blocks.close()

    def quote(self, index: int, _tag: Tag) -> int:
        self._flush()
        self._open_container(index, Container("> ", "> ", quote=True))
        return index + 1

    def rule(self, index: int, _tag: Tag) -> int:
        self._flush()
        if self.blocks.part.blocks and not self._cell:
            self.blocks.add("---")
        return index + 1

    def listing(self, index: int, tag: Tag) -> int:
        self._flush()
        end = self._tokens.closing[index]
        in_prose = bool(self.blocks.part.blocks)
        if not self._lists and is_contents_list(self._tokens, index, end, in_prose=in_prose):
            return end + 1
        start = tag.attributes.get("start", "")
        number = int(start) if start.isdecimal() and len(start) < 10 else 1
        self._lists.append(number if tag.name == "ol" else None)
        self._ends[end] = self._close_list
        return index + 1

    def _close_list(self) -> None:
        self._flush()
        self._lists.pop()
        self.blocks.end_list()

    def item(self, index: int, _tag: Tag) -> int:
        self._flush()
        number = self._lists[-1] if self._lists else None
        marker = "- "
        if number is not None:
            marker = f"{number}. "
            self._lists[-1] = number + 1
        self._open_container(index, Container(marker, " " * len(marker)))
        return index + 1

    def summary(self, index: int, _tag: Tag) -> int:
        self._flush()
        return self._open_title(index)

    def preformatted(self, index: int, tag: Tag) -> int:
        self._flush()
        end = self._tokens.closing[index]
        if code := code_text(self._tokens, index, end):
            self._anchor = None
            self.blocks.add(fence(code, self._language_of(index, end, tag.attributes)))
        return end + 1

    def _language_of(self, index: int, end: int, attributes: Attributes) -> str:
        tags, languages = self._tokens.tags, self._languages
        own = language_of(attributes, bare=True)
        if own is None and index + 1 < end and tags[index + 1].name == "code":
            own = language_of(tags[index + 1].attributes, bare=True)
        while languages and languages[-1][0] < index:
            languages.pop()
        if own is None and languages:
            own = languages[-1][1]
        return own or ""

    # --- tables -----------------------------------------------------------------------------

    def table(self, index: int, tag: Tag) -> int:
        self._flush()
        tokens = self._tokens
        if index in tokens.layout_tables or tag.attributes.get("role") == "presentation":
            return index + 1
        end = tokens.closing[index]
        table = read_table(tokens, index, end)
        if is_layout(tokens, table, index, end):
            return index + 1
        if table.cells >= MAX_CELLS:
            self.truncated["table: cells beyond the limit were dropped"] = None
        if table.caption:
            self.run(*table.caption)
        self.blocks.add(render_table(table, self._render_cell))
        self._anchor = None
        return end + 1

    def _render_cell(self, start: int, end: int) -> str:
        if end == start + 1:
            text = collapse(markdown_of(self._tokens.texts[end]))
        else:
            cell = Converter(self._tokens, self._links, cell=True)
            cell.run(start, end)
            text = "<br>".join(_cell_lines(part.content() for part in cell.blocks.parts))
        return text.replace("|", "\\|") if "|" in text else text

    # --- headings ---------------------------------------------------------------------------

    def heading(self, index: int, tag: Tag) -> int:
        return self._open_heading(index, tag, int(tag.name[1]))

    def _open_heading(self, index: int, tag: Tag, level: int) -> int:
        self._flush()
        if self._in_heading:
            return index + 1
        end = self._tokens.closing[index]
        heading = read_heading(self._tokens, index, end)
        anchor = tag.attributes.get("id") or heading.anchor or self._anchor or heading.around
        self._anchor = None
        self._in_heading, self._skipped = True, heading.skipped

        def close() -> None:
            self._in_heading, self._anchor = False, None
            markdown = visible(self._take_line())
            label = is_boilerplate_phrase(heading.text, one_word=False)
            self._end_heading(Part(level, heading.text, markdown, anchor, label=label))

        self._ends[end] = close
        return index + 1


def _cell_lines(contents: Iterable[str]) -> list[str]:
    """The lines of a cell, which are joined to one: code as inline code, without its fences."""
    kept: list[str] = []
    fenced = False
    for content in contents:
        for line in map(str.strip, content.split("\n")):
            if line.startswith("```"):
                fenced = not fenced
            elif line:
                kept.append(code_span(line) if fenced else line)
    return kept


_Action = Callable[[Converter, int, Tag], int]
_BLOCKS = name_set(
    "address article aside body caption center dd details div fieldset figcaption figure footer"
    " form header hgroup legend main nav p section tbody td tfoot th thead tr"
)
_BLOCK_ENDS = frozenset(f"/{name}" for name in (*_BLOCKS, "table", "ul", "ol", "dl", "li", "dt"))
_ACTIONS: dict[str, _Action] = {
    **dict.fromkeys(_BLOCKS, Converter.block),
    **dict.fromkeys(("b", "strong"), Converter.strong),
    **dict.fromkeys(("i", "em", "var", "cite", "dfn"), Converter.emphasis),
    **dict.fromkeys(("del", "s", "strike"), Converter.struck),
    **dict.fromkeys(("code", "tt", "kbd", "samp"), Converter.code),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), Converter.heading),
    **dict.fromkeys(("ul", "ol", "dir"), Converter.listing),
    "a": Converter.link,
    "span": Converter.span,
    "img": Converter.image,
    "br": Converter.line_break,
    "q": Converter.quoted,
    "math": Converter.math,
    "blockquote": Converter.quote,
    "hr": Converter.rule,
    "li": Converter.item,
    "dl": Converter.term_list,
    "dt": Converter.term,
    "summary": Converter.summary,
    "pre": Converter.preformatted,
    "table": Converter.table,
}
