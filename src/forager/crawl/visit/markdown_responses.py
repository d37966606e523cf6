"""Responses of a site that offers its pages as markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from multidict import CIMultiDict, CIMultiDictProxy

from forager.archive.warc_record import DerivedRecord
from forager.extract.kinds import MARKDOWN_TYPE, ContentKind, kind_of, media_type
from forager.extract.markdown.listing import listed_twins, name_of, pages_in, stem_of
from forager.fetch.response import Response


class MarkdownWay(StrEnum):
    """How a site offers its pages as markdown, in the order in which it is tried."""

    ACCEPT = "accept"  # the same address, for clients that accept markdown
    LINK = "link"  # a link element or Link header of the page
    ADDRESS = "address"  # a similar address, such as `page.md`
    LLMS = "llms.txt"  # a file that lists the markdown of all pages
    LLMS_FULL = "llms-full.txt"  # a file with all pages


@dataclass(frozen=True, slots=True)
class MarkdownListing:
    """What a file says of the pages of a site, by the stems and names of their addresses."""

    file: Response  # without its body
    # addresses, and the markdown if the file contains it
    pages: Mapping[str, tuple[str, str]]


def read_listing(file: Response, url: str, way: MarkdownWay) -> MarkdownListing:
    """The pages that a file of the site lists, or contains."""
    from forager.extract.decode import decode  # few sites have a listing

    text = decode(file.body, file.headers.get("Content-Type")).text
    parts = listed_twins(text, url) if way is MarkdownWay.LLMS else pages_in(text)
    stems = {stem_of(page): (page, body) for page, body in parts}
    names = Counter(map(name_of, stems))
    # a name leads to a page where it is the only one; what it leads to is compared anyway
    by_name = {name_of(stem): page for stem, page in stems.items() if names[name_of(stem)] == 1}
    return MarkdownListing(replace(file, body=b""), by_name | stems)


def with_body(response: Response, url: str, body: str) -> Response:
    """The response as if it were the markdown of one page."""
    return replace(_as_markdown(response, url, "utf-8"), body=body.encode("utf-8", "replace"))


def markdown_of(response: Response, url: str, *, by_type: bool) -> Response | None:
    """The response if it is markdown, with that type; `by_type`: only if it says so itself."""
    declared = response.headers.get("Content-Type")
    if by_type and media_type(declared) not in (MARKDOWN_TYPE, "text/x-markdown"):
        return None
    kind = kind_of(response.body, declared, response.url)
    if response.status != 200 or kind not in (ContentKind.MARKDOWN, ContentKind.PLAIN):
        return None
    return _as_markdown(response, url)


def _as_markdown(response: Response, url: str, charset: str | None = None) -> Response:
    """The response with the type of markdown: many servers send it as plain text."""
    if charset is None:
        declared = response.headers.get("Content-Type", "").partition(";")[2]
        parameter = f";{declared}" if declared else ""
    else:
        parameter = f"; charset={charset}"
    headers = CIMultiDictProxy(CIMultiDict({"Content-Type": f"{MARKDOWN_TYPE}{parameter}"}))
    return replace(response, url=url, headers=headers)


def record_of(twin: Response) -> DerivedRecord:
    """The markdown as a record of the archive."""
    declared = twin.headers["Content-Type"]
    return DerivedRecord("conversion", twin.url, datetime.now(UTC), twin.body, declared)
