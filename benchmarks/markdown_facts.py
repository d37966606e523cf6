"""Compare the tree of a page with what an independent parser finds in its markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import ada_url
from markdown_it import MarkdownIt
from markdown_it.token import Token
from selectolax.lexbor import LexborHTMLParser, LexborNode

from forager.extract.content.boilerplate import ElementVerdict, is_boilerplate_phrase
from forager.extract.content.choose import choose_main
from forager.extract.content.removal import is_contents_list, is_dropped
from forager.extract.markdown.tokens import tokenize

_PARSER = MarkdownIt("commonmark").enable("table")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class MarkdownFacts:
    """The content that must be kept: words, code without blanks, link targets."""

    headings: tuple[tuple[int, str], ...] = ()
    code_blocks: tuple[str, ...] = ()
    table_rows: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text))


def _code(text: str) -> str:
    return "".join(text.split())


# --- markdown -------------------------------------------------------------------------------


def plain_text(markdown: str) -> str:
    """The text that a reader of the rendered markdown would see."""
    return "\n".join(_text_of(token) for token in _PARSER.parse(markdown) if _has_text(token))


def _has_text(token: Token) -> bool:
    return token.type in ("inline", "fence", "code_block")


def _text_of(token: Token) -> str:
    if token.type != "inline":
        return token.content
    return "".join(map(_inline_text, token.children or ()))


def _inline_text(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak", "html_inline"):
        return " "
    return "" if token.type == "image" else token.content


def facts_of_markdown(markdown: str) -> MarkdownFacts:
    headings: list[tuple[int, str]] = []
    codes: list[str] = []
    rows: list[str] = []
    links: list[str] = []
    level = 0
    row: list[str] | None = None
    for token in _PARSER.parse(markdown):
        if token.type == "heading_open":
            level = int(token.tag[1])
        elif token.type == "heading_close":
            level = 0
        elif token.type in ("fence", "code_block"):
            codes.append(_code(token.content))
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row is not None:
            rows.append(_words(" ".join(row)))
            row = None
        elif token.type == "inline":
            links += _links_of(token)
            if level:
                headings.append((level, _code(_words(_text_of(token)))))
            if row is not None:
                row.append(_text_of(token))
    kept_rows = tuple(row for row in rows if row)
    return MarkdownFacts(tuple(headings), tuple(codes), kept_rows, tuple(links))


def _links_of(token: Token) -> Iterator[str]:
    for child in token.children or ():
        if child.type == "link_open":
            yield _comparable(str(child.attrs["href"]))


# --- the tree -------------------------------------------------------------------------------


def facts_of_html(html: bytes, url: str) -> MarkdownFacts:
    """The facts of the main element, without what is dropped as boilerplate."""
    tree = LexborHTMLParser(_kept_html(html))
    return MarkdownFacts(
        headings=tuple(_headings(tree)),
        code_blocks=tuple(_code_blocks(tree)),
        table_rows=tuple(_table_rows(tree)),
        links=tuple(_tree_links(tree, url)),
    )


def _kept_html(html: bytes) -> str:
    tree = LexborHTMLParser(html.decode("utf-8", "replace"))
    tree.strip_tags(["script", "style", "noscript", "svg"], recursive=True)
    tokens = tokenize(tree.body.html or "" if tree.body else "")
    main = choose_main(tokens)
    parts = []
    index = main.start
    while index <= main.end:
        parts.append(tokens.texts[index])
        tag, end = tokens.tags[index], tokens.closing[index]
        contents = tag.name in ("ul", "ol") and is_contents_list(tokens, index, end, in_prose=False)
        if contents or (tag.verdict is not ElementVerdict.KEEP and is_dropped(tokens, index)):
            index = end
        else:
            parts.append(_tag_text(tag.name, tag.attributes))
        index += 1
    return "".join(parts)


def _tag_text(name: str, attributes: dict[str, str]) -> str:
    kept = "".join(
        f' {key}="{value.replace(chr(34), "&quot;")}"'
        for key, value in attributes.items()
        if key in ("href", "class", "colspan", "rowspan")
    )
    return f"<{name}{kept}>"


def _headings(tree: LexborHTMLParser) -> Iterator[tuple[int, str]]:
    for node in tree.css("h1, h2, h3, h4, h5, h6"):
        text = node.text(separator="")
        if _words(text) and not is_boilerplate_phrase(" ".join(text.split()), one_word=False):
            yield int((node.tag or "h1")[1]), _code(_words(text))


def _code_blocks(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("pre"):
        code = _code(node.text())
        if code and not _is_inside_data_table(node):
            yield code


def _is_inside_data_table(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag == "table":
            return _is_data_table(parent)
        parent = parent.parent
    return False


def _is_data_table(table: LexborNode) -> bool:
    if table.css_first("table table, h1, h2, h3, h4, h5, h6") is not None:
        return False
    return any(len(row.css("td, th")) > 1 for row in table.css("tr"))


def _table_rows(tree: LexborHTMLParser) -> Iterator[str]:
    for table in tree.css("table"):
        # cells that span rows are repeated in the markdown
        spans = table.css_first("[rowspan]") is not None
        if _is_data_table(table) and not spans:
            rows = (_words(row.text(separator=" ")) for row in table.css("tr"))
            yield from (row for row in rows if row)


def _tree_links(tree: LexborHTMLParser, url: str) -> Iterator[str]:
    for node in tree.css("a[href]"):
        href = (node.attributes.get("href") or "").strip()
        is_link = href and not href.lower().startswith(("javascript:", "data:", "about:"))
        if is_link and _words(node.text()) and not _is_code_or_heading(node, href):
            try:
                yield _comparable(ada_url.join_url(url, href))
            except ValueError:
                continue


def _is_code_or_heading(node: LexborNode, href: str) -> bool:
    """Code blocks hold no links, and a heading's link to itself is its anchor."""
    parent = node.parent
    while parent is not None:
        if parent.tag == "pre" or (href.startswith("#") and (parent.tag or "")[:1] == "h"):
            return True
        parent = parent.parent
    return False


def _comparable(url: str) -> str:
    """Normalize escapes, which both sides write differently."""
    return re.sub(r"%[0-9A-Fa-f]{2}|[()<>\[\]\"'`|^{}\\ ]", "", url)
