"""Converts the tokens of a main element to parts of markdown, in one pass from left to right.

Only the cells of a table recurse, and they contain no table, so no page is nested too deep.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property

from forager.extract.content.boilerplate import ElementVerdict, is_boilerplate_phrase
from forager.extract.content.removal import is_contents_list, is_dropped
from forager.extract.markdown.blocks import Container, HeadedText
from forager.extract.markdown.definitions import DefinitionOwner, Definitions
from forager.extract.markdown.escape import code_text, escape_text, fence, markdown_of
from forager.extract.markdown.formulas import formula_of
from forager.extract.markdown.headings import HeadingText, visible
from forager.extract.markdown.table import (
    MAX_CELLS,
    cell_lines,
    is_code,
    is_layout,
    read_table,
    render_table,
)
from forager.extract.markdown.tags import (
    PLAIN,
    Attributes,
    Shape,
    Tag,
    Traits,
    is_quotation,
    language_of,
    traits_of,
    unescape,
)
from forager.extract.text import collapse, name_set

_KEEP = ElementVerdict.KEEP
_END = Shape.END


class Converter(Definitions):
    """Converts a range of tokens; also used for the cells of tables."""

    # --- the loop ---------------------------------------------------------------------------

    def run(self, start: int, end: int) -> None:
        """Convert the tokens between two tags."""
        tokens, ends = self._tokens, self._ends
        texts, tags, parts, blocks = tokens.texts, tokens.tags, self._parts, self.blocks
        if (outer := tags[start]).name == "div" and traits_of("div", outer.attributes).nested:
            self._anchor = outer.attributes.get("id")
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
                    blocks.at = index
                    ends.pop(index)()
                elif parts and tag.name in _BLOCK_ENDS:
                    blocks.at = index
                    self._flush()
                index += 1
            elif tag.verdict is not _KEEP and self._drops(index):
                tokens.removed[index] = tag.verdict.value
                index = tokens.closing[index] + 1
            elif action := _ACTIONS.get(tag.name):
                blocks.at = index
                index = action(self, index, tag)
            else:
                index += 1
        blocks.at = end
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
        if (traits.code or traits.math) and (following := self._verbatim(index, tag, traits)):
            return following
        if traits.owner or traits.nested:
            self._open_owner(index, traits)
        if traits.section and attributes.get("id"):
            self._anchor = attributes["id"]
        if traits.language is not None:
            self._languages.append((end, traits.language))
        if traits.admonition and (end - index) * 2 < self._tokens.extent:
            self._open_container(index, Container("> ", "> ", quote=True))
        return index + 1

    def _open_owner(self, index: int, traits: Traits) -> None:
        self._leave_owners(index)
        owner = DefinitionOwner(index, self._tokens.closing[index], nests=traits.nested)
        self._owners.append(owner)

    def _leave_owners(self, index: int) -> None:
        while self._owners and self._owners[-1].end < index:
            self._owners.pop()

    def _open_container(self, index: int, container: Container) -> None:
        self.blocks.open(container)
        self._ends[self._tokens.closing[index]] = self._close_container

    def _close_container(self) -> None:
        self._flush()
        self.blocks.close()

    def quote(self, index: int, tag: Tag) -> int:
        self._flush()
        if not is_quotation(tag):
            return self.block(index, tag)
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
        if not self._lists and not self._cell and self._is_contents(index, end):
            self._tokens.removed[index] = ElementVerdict.CONTENTS.value
            return end + 1
        number = _number(tag.attributes.get("start"), 1)
        self._lists.append(number if tag.name == "ol" else None)
        self._ends[end] = self._close_list
        return index + 1

    def _is_contents(self, index: int, end: int) -> bool:
        part = self.blocks.part
        in_prose = bool(part.blocks) or part.level > 1
        return is_contents_list(self._tokens, index, end, in_prose=in_prose)

    def _close_list(self) -> None:
        self._flush()
        self._lists.pop()
        self.blocks.end_list()

    def item(self, index: int, tag: Tag) -> int:
        self._flush()
        number = self._lists[-1] if self._lists else None
        if number is not None and tag.attributes:
            number = _number(tag.attributes.get("value"), number)
        marker = "- "
        if number is not None:
            marker = f"{number}. "
            self._lists[-1] = number + 1
        self._open_container(index, Container(marker, " " * len(marker)))
        self._add_task(index + 1)
        return index + 1

    def _add_task(self, index: int) -> None:
        """Add the mark of a task, whose item begins with a checkbox."""
        tag = self._tokens.tags[index]
        if tag.name == "input" and tag.attributes.get("type") == "checkbox":
            self._parts.append("[x] " if "checked" in tag.attributes else "[ ] ")

    def summary(self, index: int, _tag: Tag) -> int:
        self._flush()
        return self._open_title(index)

    def preformatted(self, index: int, tag: Tag) -> int:
        self._flush()
        end = self._tokens.closing[index]
        if code := code_text(self._tokens, index, end):
            self._anchor = None
            self.blocks.at = end
            self.blocks.add(fence(code, self._language_of(index, end, tag.attributes)))
        return end + 1

    def _verbatim(self, index: int, tag: Tag, traits: Traits) -> int:
        """Add code in paragraphs or broken lines, or a formula; 0 if an element is neither."""
        tokens, end = self._tokens, self._tokens.closing[index]
        if self._cell or self._in_heading:
            return 0
        if traits.math and (formula := formula_of(tokens, index, display=True)):
            self.blocks.at = end
            self.blocks.add(formula)
            return end + 1
        if not traits.code or self._holds_no_code(index, end):
            return 0
        return self.preformatted(index, tag)

    def _holds_no_code(self, index: int, end: int) -> bool:
        following = bisect_right(self._not_code, index)
        return following < len(self._not_code) and self._not_code[following] < end

    @cached_property
    def _not_code(self) -> list[int]:
        """Where elements that code does not have begin, found once for all around them."""
        tags = self._tokens.tags
        return [index for index, tag in enumerate(tags) if tag.name in _NOT_IN_CODE]

    def code(self, index: int, tag: Tag) -> int:
        """Inline code; as a block if it has several lines."""
        end = self._tokens.closing[index]
        if tag.end == "/span" and not self._is_styled_code(index, end):
            return self.span(index, tag)
        few = end - index < _MAX_LINES and not (self._cell or self._in_heading or self._frames)
        if few and any(each.name == "br" for each in self._tokens.tags[index + 1 : end]):
            return self.preformatted(index, tag)
        return super().code(index, tag)

    def _is_styled_code(self, index: int, end: int) -> bool:
        """Whether an element that is code by its style holds no blocks."""
        if end - index >= _MAX_LINES:
            return False
        names = {tag.name for tag in self._tokens.tags[index + 1 : end]}
        return names.isdisjoint(_BLOCKS | _NOT_IN_CODE)

    def _language_of(self, index: int, end: int, attributes: Attributes) -> str:
        tags, languages = self._tokens.tags, self._languages
        own = language_of(attributes, bare=True)
        if own is None and index + 1 < end and tags[index + 1].name == "code":
            own = language_of(tags[index + 1].attributes, bare=True)
        while languages and languages[-1][0] < index:
            languages.pop()
        if own is None and languages:
            own = languages[-1][1]
        if own == "default":  # of Sphinx: Python, if it could be colored as such
            own = "python" if any(tags[at].name == "span" for at in range(index + 1, end)) else ""
        return self._default_language if own is None else own

    # --- tables -----------------------------------------------------------------------------

    def table(self, index: int, tag: Tag) -> int:
        self._flush()
        tokens = self._tokens
        if index in tokens.layout_tables or tag.attributes.get("role") == "presentation":
            return index + 1
        end = tokens.closing[index]
        table = read_table(tokens, index, end)
        if is_layout(tokens, table, index, end):
            return self.preformatted(index, tag) if is_code(tokens, table) else index + 1
        if table.cells >= MAX_CELLS:
            self.truncated["table: cells beyond the limit were dropped"] = None
        if table.caption:
            self.run(*table.caption)
        self.blocks.at = end
        self.blocks.add(render_table(table, self._render_cell))
        self._anchor = None
        return end + 1

    def _render_cell(self, start: int, end: int) -> str:
        if end == start + 1:
            text = collapse(markdown_of(self._tokens.texts[end]))
        else:
            cell = Converter(self._tokens, self._links, cell=True)
            cell.run(start, end)
            text = "<br>".join(cell_lines(part.content() for part in cell.blocks.parts))
        return text.replace("|", "\\|") if "|" in text else text

    # --- headings ---------------------------------------------------------------------------

    def heading(self, index: int, tag: Tag) -> int:
        return self._open_heading(index, tag, int(tag.name[1]))

    def _open_heading(self, index: int, tag: Tag, level: int) -> int:
        self._flush()
        if self._in_heading:
            return index + 1
        end = self._tokens.closing[index]
        level = self._level(index, level)
        if not level:
            return self._open_title(index)
        heading = self._read_heading(index, end)
        anchor = tag.attributes.get("id") or heading.anchor or self._anchor or heading.around
        self._anchor = None
        if name := self._reference_name(index, heading):
            self.dropped.append(heading.text)
            self._end_heading(HeadedText(level, name, escape_text(name), anchor, start=index))
            return end + 1
        self._in_heading, self._skipped = True, heading.skipped

        def close() -> None:
            self._in_heading, self._anchor = False, None
            markdown = visible(self._take_line())
            label = is_boilerplate_phrase(heading.text, one_word=False)
            part = HeadedText(level, heading.text, markdown, anchor, label=label, start=index)
            self._end_heading(part)

        self._ends[end] = close
        return index + 1

    def _level(self, index: int, level: int) -> int:
        """The level of a heading: below that of the definition around it.

        0 for a label in an article: an `h3` "Types" below the `h4` that is the title of it.
        """
        self._leave_owners(index)
        owners = self._owners
        if not owners:
            return level
        owner = owners[-1]
        if owner.nests:
            return self._nested_level(owner, level)
        if level == 1:
            return level
        if owner.defines:
            return max(level, min(6, owner.level + 1))
        if not owner.level:
            owner.level = level if index - owner.start <= _NEAR_START else 1
        return level if level >= owner.level else 0

    def _nested_level(self, owner: DefinitionOwner, level: int) -> int:
        """The level of a heading in a part of a manual: below the title of the part around it."""
        if not owner.level:
            around = next((each.level for each in reversed(self._owners[:-1]) if each.level), 0)
            owner.level = min(6, max(level, around + 1))
            owner.shift = owner.level - level
        return min(6, level + owner.shift)

    def _reference_name(self, index: int, heading: HeadingText) -> str:
        """The name of a reference page whose title is "Name", and which the line below it names."""
        owners = self._owners
        if heading.text != "Name" or not owners or not owners[-1].nests:
            return ""
        tokens = self._tokens
        end = tokens.closing[index]
        line = collapse(unescape("".join(tokens.texts[end + 1 : end + _NEAR_START])))
        found = _NAME_LINE.match(line)
        return found[1] if found else ""


_NAME_LINE = re.compile(r"([^\s,\u2014\u2013]{1,100})(?:, [^\s,]+)* [\u2014\u2013-] \S")
_NOT_IN_CODE = name_set("pre h1 h2 h3 h4 h5 h6 ul ol dl img form")
_MAX_LINES = 400  # tags of inline code that may be a block
_NEAR_START = 8  # tags between the beginning of an article and its title


def _number(written: str | None, default: int) -> int:
    return int(written) if written and written.isdecimal() and len(written) < 10 else default


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
    "sup": Converter.superscript,
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
