"""How a document is put together from the parts of a page."""

from __future__ import annotations

from hashlib import sha256

from selectolax.lexbor import LexborHTMLParser

from forager.extract.content.choose import Main, choose_main
from forager.extract.content.language import detect_language
from forager.extract.content.scripted import STREAMED, place_streamed_pieces
from forager.extract.document import EXTRACTOR_VERSION, Document
from forager.extract.kinds import ContentKind
from forager.extract.markdown.blocks import Part
from forager.extract.markdown.convert import MAX_HEADING_LENGTH, Converter
from forager.extract.markdown.escape import escape_text
from forager.extract.markdown.headings import read_heading
from forager.extract.markdown.links import MIN_BUDGET, Links
from forager.extract.markdown.scan import looks_like_markdown, scan_markdown
from forager.extract.markdown.tokens import Tokens, first_id, tokenise
from forager.extract.sections import MAX_SECTIONS, build_sections, join_parts, without_labels
from forager.extract.text import storable


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
    converter = _converted(tokens, main, Links(url, max(MIN_BUDGET, 2 * len(html))))
    fallbacks = main.fallbacks
    if converter.dropped and _is_mostly_phrases(converter):
        links = Links(url, max(MIN_BUDGET, 2 * len(html)))
        converter = _converted(tokens, main, links, phrases=False)
        fallbacks += 1
    parts = without_labels(converter.blocks.parts)
    if main.title is not None:
        _set_title(parts, tokens, main.title, title or "")
    return _document(
        parts, url, title, language, main.rule, converter.all_truncated, fallbacks=fallbacks
    )


_MAX_PHRASES = 0.25  # the share of a page that may be left out for what it says


def _converted(tokens: Tokens, main: Main, links: Links, *, phrases: bool = True) -> Converter:
    converter = Converter(tokens, links, phrases=phrases)
    converter.run(main.start, main.end)
    return converter


def _is_mostly_phrases(converter: Converter) -> bool:
    kept = sum(len(block) for part in converter.blocks.parts for block in part.blocks)
    return converter.dropped > _MAX_PHRASES * (kept + converter.dropped)


def _set_title(parts: list[Part], tokens: Tokens, at: int, title: str) -> None:
    """Give the text before the first heading the title that stands beside the main element.

    It is a heading of the page if the page's title begins with it, and may be the site's if not.
    """
    first = parts[0]
    first.heading = read_heading(tokens, at, tokens.closing[at]).text[:MAX_HEADING_LENGTH]
    first.anchor = first_id(tokens, at)
    has_own = len(parts) > 1 and title.startswith(parts[1].heading)
    if first.heading and title.startswith(first.heading) and not has_own:
        first.level = 1
        first.markdown_heading = escape_text(first.heading)


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
    *,
    fallbacks: int = 0,
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
        fallbacks=fallbacks,
    )
