"""No pattern goes back over a text: sixteen times the text is not two hundred times the work.

Processor time is compared with itself, and only where there is enough of it to be compared: on a
machine of any speed, what grows with the length stays far below both marks.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from time import process_time

import pytest

from forager.extract.directives import header_directives
from forager.extract.document import extract_reading
from forager.extract.identifiers import identifier_lexemes
from forager.extract.kinds import kind_of
from forager.extract.markdown.listing import listed_twins, pages_in
from forager.extract.markdown.scan import scan_markdown
from forager.extract.metadata import detect_language, header_canonicals
from forager.extract.product.json_ld import lenient_json
from forager.extract.product.price import money_in
from forager.extract.traps import find_trap
from hostile.pages import HTML, MARKDOWN, RUNS

URL = "http://a.example/x"
SMALL, LARGE = 2_000, 32_000
ENOUGH_SECONDS = 0.1
TOO_MUCH = 64

Work = Callable[[str], object]
WORK: dict[str, Work] = {
    "identifiers": identifier_lexemes,
    "language": detect_language,
    "markdown": scan_markdown,
    "markdown headings": lambda text: scan_markdown(f"<a id='x'>{text}\n# a\n{text}\n===\n"),
    "markdown listing": lambda text: list(listed_twins(text, URL)),
    "pages of a listing": lambda text: list(pages_in(f"# {text}\n#{text}\nurl:{text}\n{text}")),
    "link header": lambda text: header_canonicals([f"<x>; rel={text}"]),
    "robots header": lambda text: header_directives([text]),
    "kind": lambda text: kind_of(text.encode(), None, URL),
    "traps": lambda text: find_trap(f"{URL}?{text[:4000]}", date(2026, 1, 1)),
    "prices": lambda text: list(money_in(text)),
    "linked data": lenient_json,
    "markdown page": lambda text: extract_reading(text.encode(), URL, MARKDOWN),
    "page": lambda text: extract_reading(f"<main><p>{text}</p>".encode(), URL, HTML),
}
MORE_RUNS = (
    "](",
    "](a.md",
    "# a\n",
    "url: http://a/\n",
    "<!---->",
    "date",
    "11,",
    "111,",
    "<a id='x'>",
    "; rel=",
    "a ",
    "/*",
    "\\u",
)


def seconds(work: Work, text: str) -> float:
    """The least of three: what else the machine does only adds to it."""
    took = []
    for _ in range(3):
        before = process_time()
        work(text)
        took.append(process_time() - before)
        if took[-1] < ENOUGH_SECONDS:
            break
    return min(took)


@pytest.mark.parametrize("name", WORK)
def test_no_text_is_read_again_and_again(name: str) -> None:
    work = WORK[name]
    for run in (*RUNS.values(), *MORE_RUNS):
        small, large = (run * (size // len(run)) + "b" for size in (SMALL, LARGE))
        took = seconds(work, large)
        if took > ENOUGH_SECONDS:
            assert took < TOO_MUCH * seconds(work, small), f"{run!r} is read again and again"
