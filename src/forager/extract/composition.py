"""Composes a document from the parts of a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256

from selectolax.lexbor import LexborHTMLParser

from forager.extract.anchors import place_anchors
from forager.extract.content.choose import choose_main
from forager.extract.content.repeated import NOTHING_REPEATED, RepeatedBlocks, mark_repeated
from forager.extract.content.state import STREAMED, place_streamed_pieces
from forager.extract.document import Document, extractor_version
from forager.extract.explanation import explain_removed
from forager.extract.kinds import ContentKind
from forager.extract.markdown.blocks import HeadedText
from forager.extract.markdown.contents import remove_contents
from forager.extract.markdown.convert import Converter
from forager.extract.markdown.escape import escape_text
from forager.extract.markdown.headings import read_heading
from forager.extract.markdown.phrasing import MIN_BUDGET, Links
from forager.extract.markdown.scan import looks_like_markdown, scan_markdown
from forager.extract.markdown.signatures import MAX_HEADING_LENGTH
from forager.extract.markdown.styles import apply_styles
from forager.extract.markdown.tokens import Tokens, first_id, tokenize
from forager.extract.metadata import detect_language
from forager.extract.sections import MAX_SECTIONS, build_sections, join_parts, without_labels
from forager.extract.text import storable
from forager.extract.titles import find_title, is_in_title


def tokens_of(tree: LexborHTMLParser) -> tuple[Tokens | None, int]:
    """The tokens of an HTML page, and how many characters they were read from."""
    html = _body(tree)
    if STREAMED in html:
        place_streamed_pieces(tree)
        html = _body(tree)
    tokens = tokenize(html) if html else None
    if tokens is not None and tree.head is not None and (styles := tree.head.css("style")):
        apply_styles(tokens, "".join(style.text() for style in styles))
    return tokens, len(html)


def extract_document(
    content: str | LexborHTMLParser,
    url: str,
    kind: ContentKind = ContentKind.HTML,
    *,
    title: str | None = None,
    language: str | None = None,
    repeated: RepeatedBlocks | None = None,
    code_language: str = "",
    explain: bool = False,
    on_tokens: Callable[[Tokens], None] | None = None,
) -> Document | None:
    """The document of a page, or None where it has no content.

    HTML may come as text or as a tree, which is changed: no node of it may be used afterwards.
    Links are made absolute against `url`. Code that names no language is in `code_language`. A
    page that only repeats others keeps the repeated blocks.
    """
    learned = repeated or NOTHING_REPEATED
    if kind in (ContentKind.MARKDOWN, ContentKind.PLAIN):
        assert isinstance(content, str), "only HTML has a tree"
        return _from_text(storable(content), url, kind, title, language, learned.digest)
    tree = LexborHTMLParser(storable(content)) if isinstance(content, str) else content
    compose = partial(_compose, tree, url, title, language, code_language, explain=explain)
    document = compose(learned, on_tokens=on_tokens)
    if document is None and learned.elements:
        document = compose(NOTHING_REPEATED)
        if document is not None:
            version = extractor_version(learned.digest)
            return replace(document, extractor_version=version, fallbacks=document.fallbacks + 1)
    return document


def _compose(
    tree: LexborHTMLParser,
    url: str,
    title: str | None,
    language: str | None,
    code_language: str,
    repeated: RepeatedBlocks,
    *,
    explain: bool,
    on_tokens: Callable[[Tokens], None] | None = None,
) -> Document | None:
    tokens, size = tokens_of(tree)
    if tokens is None:
        return None
    if on_tokens is not None:
        on_tokens(tokens)
    marked = mark_repeated(tokens, repeated) if repeated.elements else {}
    main = choose_main(tokens)
    title_at = find_title(tokens, main, title or "")
    budget = max(MIN_BUDGET, 2 * size)
    converter = Converter(tokens, Links(url, budget), language=code_language)
    converter.run(main.start, main.end)
    fallbacks = main.fallbacks
    if converter.dropped and _is_mostly_phrases(converter):
        converter = Converter(tokens, Links(url, budget), phrases=False, language=code_language)
        converter.run(main.start, main.end)
        fallbacks += 1
    parts, labels = without_labels(converter.blocks.parts)
    if title_at is not None:
        _set_title(parts, tokens, title_at, title or "")
    place_anchors(tokens, parts, main.start, main.end)
    contents = remove_contents(parts, url)
    document = _document(parts, url, title, language, main.rule, repeated.digest)
    return document and replace(
        document,
        truncated=(*document.truncated, *converter.all_truncated),
        fallbacks=fallbacks,
        removed=(
            explain_removed(
                tokens, main, marked, repeated.pages, [*converter.dropped, *labels], contents
            )
            if explain
            else ()
        ),
    )


_MAX_PHRASES = 0.25  # the share of a page that may be left out as boilerplate phrases


def _is_mostly_phrases(converter: Converter) -> bool:
    kept = sum(len(block) for part in converter.blocks.parts for block in part.blocks)
    dropped = sum(map(len, converter.dropped))
    return dropped > _MAX_PHRASES * (kept + dropped)


def _set_title(parts: list[HeadedText], tokens: Tokens, at: int, title: str) -> None:
    """Give the text before the first heading the title that stands beside the main element.

    It is a heading of the page if the page's title begins with it, and may be the site's if not.
    """
    first = parts[0]
    first.heading = read_heading(tokens, at, tokens.closing[at]).text[:MAX_HEADING_LENGTH]
    first.anchor = first_id(tokens, at)
    has_own = len(parts) > 1 and title.startswith(parts[1].heading)
    if first.heading and is_in_title(first.heading, title) and not has_own:
        first.level = 1
        first.markdown_heading = escape_text(first.heading)


def _body(tree: LexborHTMLParser) -> str:
    return (tree.body.html or "") if tree.body is not None else ""


def _from_text(
    text: str, url: str, kind: ContentKind, title: str | None, language: str | None, digest: str
) -> Document | None:
    """The document of a page that is markdown or plain text."""
    if kind is ContentKind.PLAIN and not looks_like_markdown(text):
        parts = [HeadedText(0, blocks=[text.strip()])]
        return _document(parts, url, title, language, "plain text", digest)
    parts, front_title = scan_markdown(text)
    return _document(parts, url, front_title or title, language, "markdown", digest)


def _unresolved(markdown: str, url: str) -> str:
    """Links within the page as the page has them: one page may be found under two URLs."""
    plain = url.partition("#")[0]
    return markdown.replace(f"]({plain}#", "](#").replace(f"](<{plain}#", "](<#")


def _document(
    parts: list[HeadedText],
    url: str,
    title: str | None,
    language: str | None,
    chosen_by: str,
    digest: str,
) -> Document | None:
    markdown = join_parts(parts)
    if not markdown.strip():
        return None
    title = title or next((part.heading for part in parts if part.heading), None) or url
    sections, too_many = build_sections(parts, title)
    cut = f"sections: headings beyond the first {MAX_SECTIONS} are text"
    return Document(
        title=title,
        language=language or detect_language(markdown),
        markdown=markdown,
        sections=sections,
        content_hash=sha256(f"{title}\0{_unresolved(markdown, url)}".encode()).digest(),
        extractor_version=extractor_version(digest),
        chosen_by=chosen_by,
        truncated=(cut,) if too_many else (),
    )
