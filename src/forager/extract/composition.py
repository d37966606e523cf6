"""Composes a document from the parts of a page."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from selectolax.lexbor import LexborHTMLParser

from forager.extract.content.boilerplate import Verdict
from forager.extract.content.choose import choose_main
from forager.extract.content.removal import is_dropped
from forager.extract.content.repeated import (
    NOTHING_REPEATED,
    RepeatedBlocks,
    block_text,
    mark_repeated,
)
from forager.extract.content.state import STREAMED, place_streamed_pieces
from forager.extract.document import Document, RemovedBlock, extractor_version
from forager.extract.kinds import ContentKind
from forager.extract.markdown.blocks import Part
from forager.extract.markdown.convert import Converter
from forager.extract.markdown.definitions import MAX_HEADING_LENGTH
from forager.extract.markdown.escape import escape_text
from forager.extract.markdown.headings import read_heading
from forager.extract.markdown.phrasing import MIN_BUDGET, Links
from forager.extract.markdown.scan import looks_like_markdown, scan_markdown
from forager.extract.markdown.tokens import Tokens, first_id, tokenize
from forager.extract.metadata import detect_language
from forager.extract.sections import MAX_SECTIONS, build_sections, join_parts, without_labels
from forager.extract.text import storable


def tokens_of(tree: LexborHTMLParser) -> tuple[Tokens | None, int]:
    """The tokens of an HTML page, and how many characters they were read from."""
    html = _body(tree)
    if STREAMED in html:
        place_streamed_pieces(tree)
        html = _body(tree)
    return (tokenize(html) if html else None), len(html)


def extract_document(
    content: str | LexborHTMLParser,
    url: str,
    kind: ContentKind = ContentKind.HTML,
    *,
    title: str | None = None,
    language: str | None = None,
    repeated: RepeatedBlocks | None = None,
    explain: bool = False,
) -> Document | None:
    """The document of a page, or None where it has no content.

    HTML may come as text or as a tree, which is changed: no node of it may be used afterwards.
    Links are made absolute against `url`. A page that only repeats others keeps the repeated
    blocks.
    """
    learned = repeated or NOTHING_REPEATED
    if kind not in (ContentKind.HTML, ContentKind.XHTML):
        assert isinstance(content, str), "only HTML has a tree"
        return _from_text(storable(content), url, kind, title, language, learned.digest)
    tree = LexborHTMLParser(storable(content)) if isinstance(content, str) else content
    document = _compose(tree, url, title, language, learned, explain=explain)
    if document is None and learned.elements:
        document = _compose(tree, url, title, language, NOTHING_REPEATED, explain=explain)
        if document is not None:
            version = extractor_version(learned.digest)
            return replace(document, extractor_version=version, fallbacks=document.fallbacks + 1)
    return document


def _compose(
    tree: LexborHTMLParser,
    url: str,
    title: str | None,
    language: str | None,
    repeated: RepeatedBlocks,
    *,
    explain: bool,
) -> Document | None:
    tokens, size = tokens_of(tree)
    if tokens is None:
        return None
    marked = mark_repeated(tokens, repeated) if repeated.elements else {}
    main = choose_main(tokens)
    budget = max(MIN_BUDGET, 2 * size)
    converter = Converter(tokens, Links(url, budget))
    converter.run(main.start, main.end)
    fallbacks = main.fallbacks
    if converter.dropped and _is_mostly_phrases(converter):
        converter = Converter(tokens, Links(url, budget), phrases=False)
        converter.run(main.start, main.end)
        fallbacks += 1
    parts = without_labels(converter.blocks.parts)
    if main.title is not None:
        _set_title(parts, tokens, main.title, title or "")
    document = _document(parts, url, title, language, main.rule, repeated.digest)
    return document and replace(
        document,
        truncated=(*document.truncated, *converter.all_truncated),
        fallbacks=fallbacks,
        removed=_removed(tokens, converter.removed, marked, repeated.pages) if explain else (),
    )


_MAX_EXCERPT = 200
_REASONS = {
    Verdict.DROP: "boilerplate by its name",
    Verdict.CONTENTS: "a table of contents",
    Verdict.HIDDEN: "hidden",
    Verdict.FORM: "a form",
}


def _removed(
    tokens: Tokens, dropped: list[int], marked: dict[int, int], pages: int
) -> tuple[RemovedBlock, ...]:
    """The blocks of the main element that were left out, and those that repeat on other pages."""
    found = []
    for index in sorted({*dropped, *marked}):
        tag = tokens.tags[index]
        reason = _REASONS.get(tag.verdict)
        if index in marked:
            reason = f"on {marked[index]} of {pages} pages of its source"
            reason += "" if is_dropped(tokens, index) else "; kept because of what follows it"
        text = block_text(tokens, index)[:_MAX_EXCERPT]
        if reason and text:
            found.append(RemovedBlock(text, tag.place or tag.name, reason))
    return tuple(found)


_MAX_PHRASES = 0.25  # the share of a page that may be left out as boilerplate phrases


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


def _from_text(
    text: str, url: str, kind: ContentKind, title: str | None, language: str | None, digest: str
) -> Document | None:
    """The document of a page that is markdown or plain text."""
    if kind is ContentKind.PLAIN and not looks_like_markdown(text):
        parts = [Part(0, blocks=[text.strip()])]
        return _document(parts, url, title, language, "plain text", digest)
    parts, front_title = scan_markdown(text)
    return _document(parts, url, front_title or title, language, "markdown", digest)


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
