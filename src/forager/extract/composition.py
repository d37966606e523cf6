"""How a document is put together from the parts of a page."""

from __future__ import annotations

from hashlib import sha256

from selectolax.lexbor import LexborHTMLParser

from forager.extract.content.choose import choose_main
from forager.extract.content.language import detect_language
from forager.extract.content.streamed import STREAMED, place_streamed_pieces
from forager.extract.document import EXTRACTOR_VERSION, Document
from forager.extract.kinds import ContentKind
from forager.extract.markdown.blocks import Part
from forager.extract.markdown.convert import MAX_HEADING_LENGTH, Converter
from forager.extract.markdown.links import MIN_BUDGET, Links
from forager.extract.markdown.scan import looks_like_markdown, scan_markdown
from forager.extract.markdown.tags import unescape
from forager.extract.markdown.tokens import tokenise
from forager.extract.sections import MAX_SECTIONS, build_sections, join_parts
from forager.extract.text import collapse, storable


def from_tree(
    content: str | LexborHTMLParser, url: str, title: str | None, language: str | None
) -> Document | None:
    """The document of an HTML page."""
    tree = LexborHTMLParser(storable(content)) if isinstance(content, str) else content
    html = _body(tree)
    if STREAMED in html:
        place_streamed_pieces(tree)
        html = _body(tree)
    if not html:
        return None
    tokens = tokenise(html)
    main = choose_main(tokens)
    links = Links(url, max(MIN_BUDGET, 2 * len(html)))
    converter = Converter(tokens, links)
    converter.run(main.start, main.end)
    truncated = list(converter.truncated)
    if links.dropped:
        truncated.append(f"links: {links.dropped} beyond the limit are plain text")
    parts = converter.blocks.parts
    if main.title is not None:
        heading = tokens.kept_text(main.title, tokens.closing[main.title])
        parts[0].heading = collapse(unescape(heading))[:MAX_HEADING_LENGTH]
    return _document(parts, url, title, language, main.rule, truncated)


def _body(tree: LexborHTMLParser) -> str:
    return (tree.body.html or "") if tree.body is not None else ""


def from_text(
    content: str, url: str, kind: ContentKind, title: str | None, language: str | None
) -> Document | None:
    """The document of a page that is markdown or plain text."""
    text = storable(content)
    if kind is ContentKind.PLAIN and not looks_like_markdown(text):
        return _document([Part(0, blocks=[text.strip()])], url, title, language, "plain text", [])
    parts, front_title = scan_markdown(text)
    return _document(parts, url, front_title or title, language, "markdown", [])


def _unresolved(markdown: str, url: str) -> str:
    """Links within the page as the page has them: one page may be found under two URLs."""
    plain = url.partition("#")[0]
    return markdown.replace(f"]({plain}#", "](#").replace(f"](<{plain}#", "](<#")


def _document(
    parts: list[Part],
    url: str,
    title: str | None,
    language: str | None,
    chosen_by: str,
    truncated: list[str],
) -> Document | None:
    markdown = join_parts(parts)
    if not markdown.strip():
        return None
    title = title or next((part.heading for part in parts if part.heading), None) or url
    sections, too_many = build_sections(parts, title)
    if too_many:
        truncated.append(f"sections: headings beyond the first {MAX_SECTIONS} are text")
    return Document(
        title=title,
        language=language or detect_language(markdown),
        markdown=markdown,
        sections=sections,
        content_hash=sha256(f"{title}\0{_unresolved(markdown, url)}".encode()).digest(),
        extractor_version=EXTRACTOR_VERSION,
        chosen_by=chosen_by,
        truncated=tuple(truncated),
    )
