"""PDF to HTML: its text, the entries of its outline as headings, and an anchor for each page."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from html import escape

import pypdfium2

from forager.extract.conversion import NotReadable
from forager.extract.text import collapse, storable

MAX_PAGES = 5_000
MAX_OUTLINE = 20_000
_DIGITS = re.compile(r"\d+")
_LABEL = re.compile(r"^[\dA-Z]{0,4}(?:\.\d+)*\.?\s+")
# in how many pages a first or last line repeats if it is a header or footer
_REPEATED_SHARE, _REPEATED_LEAST = 0.3, 4
_ENDS = (".", ":", "!", "?", ";", ")")

Heading = tuple[int, str]  # level and text


def pdf_to_html(body: bytes) -> str:
    """Raise NotReadable with the reason if there is nothing to read."""
    try:
        with closing(pypdfium2.PdfDocument(body)) as document:
            title = collapse(storable(document.get_metadata_value("Title")))
            outline = _outline(document)
            pages = [_lines(document, number) for number in range(min(len(document), MAX_PAGES))]
    except pypdfium2.PdfiumError as error:
        message = "the PDF needs a password" if "assword" in str(error) else "the PDF is damaged"
        raise NotReadable(message) from None
    if not any(pages):
        raise NotReadable("the PDF has no text: its pages may be scanned images")
    _drop_repeated(pages)
    parts = [part for number, lines in enumerate(pages) for part in _page(number, lines, outline)]
    shown = title or next(line for lines in pages for line in lines)
    head = f"<head><title>{escape(shown)}</title></head>"
    return f"<html>{head}<body><main>{''.join(parts)}</main></body></html>"


def _outline(document: pypdfium2.PdfDocument) -> dict[int, list[Heading]]:
    """Headings by page."""
    found: dict[int, list[Heading]] = defaultdict(list)
    for count, entry in enumerate(document.get_toc(max_depth=6)):
        target = entry.get_dest()
        title = collapse(storable(entry.get_title()))
        page = target.get_index() if target is not None else None
        if page is not None and title:
            found[page].append((min(entry.level + 1, 6), title))
        if count >= MAX_OUTLINE:
            break
    return found


def _lines(document: pypdfium2.PdfDocument, number: int) -> list[str]:
    try:
        with closing(document.get_page(number)) as page, closing(page.get_textpage()) as text:
            content = storable(text.get_text_bounded())
    except pypdfium2.PdfiumError:
        return []  # one page that is damaged
    # a hyphen at the end of a line
    content = content.replace("\ufffe", "\u00ad").replace("\x02", "\u00ad")
    return [line for each in content.splitlines() if (line := collapse(each))]


def _drop_repeated(pages: Sequence[list[str]]) -> None:
    """Remove running headers and footers: equal first and last lines but for their numbers."""
    counts = Counter(
        _DIGITS.sub("#", line) for lines in pages for line in {*lines[:1], *lines[-1:]}
    )
    least = max(_REPEATED_LEAST, _REPEATED_SHARE * len(pages))

    def repeats(line: str) -> bool:
        return line.isdigit() or counts[_DIGITS.sub("#", line)] >= least

    for lines in pages:
        if len(lines) > 1 and repeats(lines[-1]):
            lines.pop()
        if len(lines) > 1 and repeats(lines[0]):
            del lines[0]


def _page(number: int, lines: list[str], outline: dict[int, list[Heading]]) -> Iterator[str]:
    """The text of a page under its headings; without an outline, each page is a section."""
    anchor = f"page={number + 1}"
    if not outline:
        yield f'<h2 id="{anchor}">Page {number + 1}</h2>'
    start = 0
    for level, title in outline.get(number, ()):
        at, end = _find(title, lines, start)
        yield from _paragraphs(lines[start:at])
        yield f'<h{level} id="{anchor}">{escape(title)}</h{level}>'
        start = end
    yield from _paragraphs(lines[start:])


def _find(title: str, lines: list[str], start: int) -> tuple[int, int]:
    """The lines of a heading in the text; the next line if it is not there."""
    wanted = _comparable(title)
    for at in range(start, len(lines)):
        if not wanted.startswith(_comparable(lines[at])):
            continue
        for end in range(at + 1, min(at + 4, len(lines) + 1)):
            if _comparable(" ".join(lines[at:end])) == wanted:
                return at, end
    return start, start


def _comparable(text: str) -> str:
    """A heading without its number, which outlines often leave out."""
    return "".join(filter(str.isalnum, _LABEL.sub("", text).lower())) or text


def _paragraphs(lines: list[str]) -> Iterator[str]:
    if not lines:
        return
    width = max(map(len, lines))
    text = ""
    for line in lines:
        text = _joined(text, line)
        if len(line) < 0.75 * width and line.endswith(_ENDS):
            yield f"<p>{escape(text)}</p>"
            text = ""
    if text:
        yield f"<p>{escape(text)}</p>"


def _joined(text: str, line: str) -> str:
    if text.endswith("\u00ad"):
        return text[:-1] + line
    if text[-2:-1].isalpha() and text.endswith("-") and line[:1].islower():
        return text[:-1] + line
    return f"{text} {line}" if text else line
