"""`forager parse`: what one page says, as a crawl would store it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from forager.cli.crawl_flags import RequestOptions
from forager.cli.options import AsJson, grouped
from forager.cli.output import note, say, show_json, write
from forager.cli.running import with_database
from forager.cli.words import clean
from forager.errors import ErrorKind, GiveUp, InvalidInput, NotFound

if TYPE_CHECKING:
    from forager.crawl.options import CrawlOptions
    from forager.db.database import Database
    from forager.extract.document import Document
    from forager.settings import Settings

# what files are by their names, where a server would say so
_TYPES = {
    ".htm": "text/html",
    ".html": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mdx": "text/markdown",
}


class Kind(StrEnum):
    DOCUMENT = "document"
    PRODUCT = "product"


@dataclass(frozen=True, slots=True)
class _Page:
    url: str
    body: bytes
    content_type: str | None
    headers: tuple[tuple[str, str], ...] = ()


@grouped
def parse(
    context: typer.Context,
    page: Annotated[
        str, typer.Argument(metavar="FILE_OR_URL", help="A file (- for stdin), or a URL.")
    ],
    url: Annotated[
        str | None,
        typer.Option(help="The address of a file.", show_default="http://localhost/ and its name"),
    ] = None,
    kind: Annotated[Kind, typer.Option(help="What to look for in the page.")] = Kind.DOCUMENT,
    *,
    request: RequestOptions,
    as_json: AsJson = False,
) -> None:
    """Show what a crawl makes of one page: its text and sections, or the product it sells."""
    show = _show_product if kind is Kind.PRODUCT else _show
    if "://" not in page:
        return show(_from_file(page, url), as_json=as_json)
    if url is not None:
        raise InvalidInput("--url is for files: a page that is fetched has its own address")
    from forager.crawl.options import crawl_options

    options = crawl_options(request.payload(page))
    return show(
        with_database(context, lambda db, settings: _fetched(db, settings, options)),
        as_json=as_json,
    )


# --- where the page comes from -------------------------------------------------------------------


def _from_file(name: str, url: str | None) -> _Page:
    path = Path(name)
    try:
        body = sys.stdin.buffer.read() if name == "-" else path.read_bytes()
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {name}", hint="A URL begins with http:// or https://."
        ) from None
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}") from None
    address = url or f"http://localhost/{quote('stdin' if name == '-' else path.name)}"
    return _Page(address, body, _TYPES.get(path.suffix.lower()))


async def _fetched(database: Database, settings: Settings, options: CrawlOptions) -> _Page:
    from forager.crawl.explain.probe import probe

    result = await probe(database, settings, options, body=False)
    response = result.response
    if result.problem is not None:
        raise GiveUp(f"{response.url}: {result.problem}", kind=ErrorKind.HTTP_CLIENT)
    headers = tuple(response.headers.items())
    return _Page(response.url, response.body, response.headers.get("Content-Type"), headers)


# --- what is made of it --------------------------------------------------------------------------


def _read(page: _Page) -> Document:
    from forager.crawl.extraction.reading import document_of
    from forager.extract.document import extract_reading

    _refuse_other(page)
    return document_of(extract_reading(page.body, page.url, page.content_type, page.headers))


def _show_product(page: _Page, *, as_json: bool) -> None:
    from forager.cli.parsed_product import product_object, show_product
    from forager.extract.product.page import open_page
    from forager.parsers.registry import parse_product

    _refuse_other(page)
    opened = open_page(page.body, page.url, page.content_type, page.headers)
    parsed = parse_product(opened)
    return show_json(product_object(parsed, page.url)) if as_json else show_product(parsed)


def _refuse_other(page: _Page) -> None:
    from forager.extract.kinds import ContentKind, kind_of

    if kind_of(page.body, page.content_type, page.url) is ContentKind.OTHER:
        raise GiveUp(
            f"{page.url} is neither HTML nor text: there is nothing to read", kind=ErrorKind.PARSE
        )


def _show(page: _Page, *, as_json: bool) -> None:
    document = _read(page)
    if as_json:
        return show_json(
            {
                "url": page.url,
                "title": document.title,
                "language": document.language,
                "markdown": document.markdown,
                "sections": document.sections,
                "truncated": document.truncated,
            }
        )
    for cut in document.truncated:
        note(f"cut short: {cut}")
    say(document.title, "bold")
    return write(clean(f"\n{document.markdown}\n").encode("utf-8", "replace"))
