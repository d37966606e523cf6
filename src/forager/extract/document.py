"""One page in, its document out: title, language, markdown and sections of its main content."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from selectolax.lexbor import LexborHTMLParser

from forager.extract.content.choose import choose_main
from forager.extract.content.language import detect_language
from forager.extract.content.streamed import STREAMED, place_streamed_pieces
from forager.extract.directives import DEFAULT_AGENT
from forager.extract.kinds import ContentKind
from forager.extract.markdown.blocks import Part
from forager.extract.markdown.convert import MAX_HEADING_LENGTH, Converter
from forager.extract.markdown.links import MIN_BUDGET, Links
from forager.extract.markdown.scan import looks_like_markdown, scan_markdown
from forager.extract.markdown.tags import unescape
from forager.extract.markdown.tokens import tokenise
from forager.extract.page import Headers, PageFacts, read_page
from forager.extract.sections import MAX_SECTIONS, Section, build_sections, join_parts
from forager.extract.text import collapse, storable

# Raised whenever the same page would give another document: documents of an older version are
# made anew, even where the server says that the page has not changed.
EXTRACTOR_VERSION = 2


@dataclass(frozen=True, slots=True)
class Document:
    """What a page says, without what surrounds it. Everything cut short says so in `truncated`."""

    title: str
    language: str | None
    markdown: str
    sections: tuple[Section, ...]
    content_hash: bytes  # of title and markdown: menus, dates and nonces around them do not count
    extractor_version: int
    chosen_by: str  # how the main content was found, for people
    truncated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything one response says: the crawl's facts, and the document where there is one."""

    facts: PageFacts
    document: Document | None


def extract_reading(
    body: bytes,
    url: str,
    content_type: str | None = None,
    headers: Headers = (),
    agent: str = DEFAULT_AGENT,
) -> Reading:
    """Facts and document of one response, from one parse."""
    facts, content = read_page(body, url, content_type, headers, agent)
    if content is None:
        return Reading(facts, None)
    base = facts.base_url or facts.url
    document = extract_document(
        content, base, facts.kind, title=facts.title, language=facts.language
    )
    return Reading(facts, document)


def extract_document(
    content: str | LexborHTMLParser,
    url: str,
    kind: ContentKind = ContentKind.HTML,
    *,
    title: str | None = None,
    language: str | None = None,
) -> Document | None:
    """The document of a page, or None where it has no content.

    HTML may come as text or as a tree, which is changed: no node of it may be used afterwards.
    Links are made absolute against `url`.
    """
    if kind in (ContentKind.HTML, ContentKind.XHTML):
        tree = LexborHTMLParser(storable(content)) if isinstance(content, str) else content
        return _from_tree(tree, url, title, language)
    assert isinstance(content, str), "only HTML has a tree"
    return _from_text(storable(content), url, kind, title, language)


def _from_tree(
    tree: LexborHTMLParser, url: str, title: str | None, language: str | None
) -> Document | None:
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


def _from_text(
    text: str, url: str, kind: ContentKind, title: str | None, language: str | None
) -> Document | None:
    if kind is ContentKind.PLAIN and not looks_like_markdown(text):
        return _document([Part(0, blocks=[text.strip()])], url, title, language, "plain text", [])
    parts, front_title = scan_markdown(text)
    return _document(parts, url, front_title or title, language, "markdown", [])


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
        content_hash=sha256(f"{title}\0{markdown}".encode()).digest(),
        extractor_version=EXTRACTOR_VERSION,
        chosen_by=chosen_by,
        truncated=tuple(truncated),
    )
