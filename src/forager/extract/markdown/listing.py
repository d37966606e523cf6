"""Files that list the markdown of a site's pages (llms.txt), or contain it (llms-full.txt)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from forager.extract.urls import NormalizedUrl, Refusal, normalize

MAX_LISTED = 50_000

_LINK = re.compile(r"\]\(<?([^()<>\s]{1,2000}\.(?:md|mdx|markdown)(?:\.txt)?)>?\)")
_PAGE_START = re.compile(
    r"^(?:#[ \t]+(?P<title>[^\s][^\n]*)\n+)?"
    r"(?:source|url):[ \t]*<?(?P<url>https?://[^\s<>]{1,2000})>?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
# what addresses of a page and its twin may end with
_ENDS = (
    "/", "/index", ".html", ".htm", ".xhtml", ".xhtm", ".md", ".mdx", ".markdown", ".md.txt",
    ".mdx.txt", ".markdown.txt",
)  # fmt: skip


def listed_twins(text: str, base: str) -> Iterator[tuple[str, str]]:
    """The addresses of markdown that a text links to, without content."""
    for found in islice(_LINK.finditer(text), MAX_LISTED):
        url = normalize(found[1], NormalizedUrl(base))
        if not isinstance(url, Refusal):
            yield url, ""


def pages_in(text: str) -> Iterator[tuple[str, str]]:
    """Address and markdown of the pages of a text: each begins with its title and address."""
    starts = list(islice(_PAGE_START.finditer(text), MAX_LISTED))
    ends = [*(start.start() for start in starts[1:]), len(text)]
    for start, end in zip(starts, ends, strict=False):
        body = text[start.end() : end].strip().removesuffix("---")
        title = f"# {start['title']}\n\n" if start["title"] else ""
        yield start["url"], body if body.startswith("# ") else title + body


def stem_of(url: str) -> str:
    """The part of an address that a page and its twin have in common."""
    stem = url.partition("#")[0]
    while (end := next(filter(stem.endswith, _ENDS), None)) is not None:
        stem = stem.removesuffix(end)
    return stem


def name_of(stem: str) -> str:
    """The last part of a path."""
    return stem.rpartition("/")[2]
