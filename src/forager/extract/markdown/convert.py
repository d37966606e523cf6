"""The tokens of a main element to parts of markdown, in one pass from left to right.

Nothing here recurses but for the cells of a table, which hold no table themselves, so no page is
nested too deep; every element is looked at a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from forager.extract.content.boilerplate import Verdict, is_dropped
from forager.extract.content.names import names
from forager.extract.content.phrases import is_boilerplate_phrase
from forager.extract.markdown.blocks import Blocks, Container, Part
from forager.extract.markdown.code import code_text, language_of
from forager.extract.markdown.contents import is_contents_list
from forager.extract.markdown.escape import code_span, escape_text, fence
from forager.extract.markdown.links import Links
from forager.extract.markdown.phrasing import Phrasing
from forager.extract.markdown.table import MAX_CELLS, is_layout, read_table, render_table
from forager.extract.markdown.tags import Attributes, Shape, Tag, unescape
from forager.extract.markdown.tokens import Tokens
from forager.extract.markdown.traits import traits_of
from forager.extract.text import collapse

MAX_HEADING_LENGTH = 1_000
MAX_MARKDOWN_HEADING = 4_000

_KEEP = Verdict.KEEP
_END = Shape.END


class Converter(Phrasing):
    """One run over the tokens."""

    def __init__(self, tokens: Tokens, links: Links, *, cell: bool = False) -> None:
        super().__init__(tokens, links)
        self.blocks = Blocks()
        self.truncated: dict[str, None] = {}
        self._cell = cell
        self._lists: list[int | None] = []  # the next number of ordered lists
        self._languages: list[tuple[int, str]] = []  # end of the wrapper, what it names

    # --- the loop ---------------------------------------------------------------------------

    def run(self, start: int, end: int) -> None:
        """Convert what stands between two tags."""
        tokens, ends = self._tokens, self._ends
        texts, tags, parts = tokens.texts, tokens.tags, self._parts
        index = start + 1
        while index < end:
            if text := texts[index]:
                if not text.isspace():
                    self._add_text(text)
                elif parts:
                    parts.append(" ")
            tag = tags[index]
            if tag.shape is _END and index in ends:
                ends.pop(index)()
                index += 1
            elif tag.verdict is not _KEEP and self._drops(index, tag):
                index = tokens.closing[index] + 1
            elif action := _ACTIONS.get(tag.name):
                index = action(self, index, tag)
            else:
                index += 1
        self._add_text(texts[end])
        self._flush()

    def _drops(self, index: int, tag: Tag) -> bool:
        if not is_dropped(self._tokens, index):
            return False
        href = tag.attributes.get("href", "")
        if self._in_heading and len(href) > 1 and href[0] == "#":
            self._anchor = self._anchor or href[1:]
        return True

    def _flush(self) -> None:
        """End the paragraph, if there is one."""
        if not self._parts:
            return
        if self._in_heading:
            self._parts.append(" ")
            return
        lines = self._inline.take_lines()
        if len(lines) == 1 and not self._cell and self._is_boilerplate(lines[0]):
            return
        if lines:
            self.blocks.add("  \n".join(lines))

    def _is_boilerplate(self, line: str) -> bool:
        is_name = bool(self.blocks.containers) or line.startswith("**")
        return is_boilerplate_phrase(line, one_word=not is_name)

    # --- blocks -----------------------------------------------------------------------------

    def block(self, index: int, tag: Tag) -> int:
        if self._parts:
            self._flush()
        return self._named_block(index, tag) if tag.attributes else index + 1

    def _named_block(self, index: int, tag: Tag) -> int:
        attributes, end = tag.attributes, self._tokens.closing[index]
        if attributes.get("role") == "heading":
            level = attributes.get("aria-level", "")
            return self._open_heading(index, tag, int(level) if level in _LEVELS else 2)
        traits = traits_of(tag.name, attributes)
        if traits.section and attributes.get("id"):
            self._anchor = attributes["id"]
        if traits.language is not None:
            self._languages.append((end, traits.language))
        if traits.admonition and (end - index) * 2 < self._tokens.extent:
            self._open_container(index, Container("> ", "> ", quote=True))
        return index + 1

    def block_end(self, index: int, _tag: Tag) -> int:
        if self._parts:
            self._flush()
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
        if not self._lists and is_contents_list(self._tokens, index, end):
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

    def term(self, index: int, tag: Tag) -> int:
        self._flush()
        if "sig" not in tag.attributes.get("class", "").split():
            return self._open_title(index)
        end = self._tokens.closing[index]  # a signature in an API reference
        if text := self._kept(index, end):
            self.blocks.add(code_span(text))
        return end + 1

    def summary(self, index: int, _tag: Tag) -> int:
        self._flush()
        return self._open_title(index)

    def _open_title(self, index: int) -> int:
        opened = self._inline.open("**")

        def close() -> None:
            if opened:
                self._inline.close()
            self._flush()

        self._ends[self._tokens.closing[index]] = close
        return index + 1

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
            text = collapse(escape_text(unescape(self._tokens.texts[end])))
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
        plain = collapse(_visible(unescape(self._tokens.kept_text(index, end))))
        before, self._anchor = self._anchor, None
        own = tag.attributes.get("id")
        self._in_heading = True

        def close() -> None:
            self._in_heading = False
            markdown = _visible(self._inline.take_line())
            anchor = own or self._anchor or before
            self._anchor = None
            self._end_heading(Part(level, plain, markdown, anchor))

        self._ends[end] = close
        return index + 1

    def _end_heading(self, part: Part) -> None:
        part.heading = part.heading.rstrip("¶§ ").removesuffix(" #") or part.markdown_heading
        if len(part.heading) > MAX_HEADING_LENGTH:
            self.truncated["heading: longer than its limit"] = None
            part.heading = part.heading[:MAX_HEADING_LENGTH]
        if len(part.markdown_heading) > MAX_MARKDOWN_HEADING:
            part.markdown_heading = escape_text(part.heading)
        if not part.heading or is_boilerplate_phrase(part.heading, one_word=False):
            self._anchor = part.anchor
        elif self._cell:
            self.blocks.add(f"**{part.markdown_heading}**")
        elif self.blocks.in_quote:
            self.blocks.add(f"{'#' * part.level} {part.markdown_heading}")
        else:
            self.blocks.begin_part(part)


_LEVELS = frozenset("123456")
# zero-width characters and soft hyphens, with which themes fill the links of headings
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))


def _visible(text: str) -> str:
    return text if text.isascii() else collapse(text.translate(_INVISIBLE))


def _cell_lines(contents: Iterable[str]) -> list[str]:
    """The lines of a cell, which has room for one: code as inline code, without its fences."""
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
_BLOCKS = names(
    "address article aside body caption center dd details div dl fieldset figcaption figure footer"
    " form header hgroup legend main nav p section tbody td tfoot th thead tr"
)
_BLOCK_ENDS = [f"/{name}" for name in (*_BLOCKS, "table", "ul", "ol", "dl", "li", "dt")]
_ACTIONS: dict[str, _Action] = {
    **dict.fromkeys(_BLOCKS, Converter.block),
    **dict.fromkeys(_BLOCK_ENDS, Converter.block_end),
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
    "dt": Converter.term,
    "summary": Converter.summary,
    "pre": Converter.preformatted,
    "table": Converter.table,
}
