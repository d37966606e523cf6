"""`forager parse`: show what a crawl would store of one page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from forager.amounts import amount_text
from forager.cli.crawls.crawl_flags import RequestOptions
from forager.cli.options import AsJson, grouped, option
from forager.cli.output import (
    clean,
    counted,
    fields_of,
    note,
    on_one_line,
    say,
    show_json,
    show_table,
    write,
)
from forager.cli.running import CommandServices, with_services
from forager.crawl.explain.probe import probe
from forager.crawl.extraction.reading import new_document
from forager.crawl.options import crawl_options
from forager.documents.archived import repeated_blocks
from forager.documents.sources import get_source
from forager.errors import ErrorKind, GiveUp, InvalidInput, NotFound
from forager.extract.content.repeated import NOTHING_REPEATED, RepeatedBlocks
from forager.extract.document import RemovedBlock, extract_reading
from forager.extract.kinds import ContentKind, kind_of
from forager.extract.product.likeness import is_product
from forager.extract.product.page import open_page
from forager.extract.product.product import Product
from forager.fetch.response import Response
from forager.parsers.registry import ParsedProduct, parse_product

_SEPARATOR = " > "


# content types by file name, in place of a header
_TYPES = {
    ".htm": "text/html",
    ".html": "text/html",
    ".xhtml": "application/xhtml+xml",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mdx": "text/markdown",
}


class ParseKind(StrEnum):
    """What is parsed from a page."""

    DOCUMENT = "document"
    PRODUCT = "product"


@dataclass(frozen=True, slots=True)
class _ParsedFile:
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
    url: str | None = option("The URL of the file.", show_default="http://localhost/ and its name"),
    kind: ParseKind = option("What to extract.", default=ParseKind.DOCUMENT),
    source: str | None = option("Remove boilerplate learned for this source, and list it."),
    *,
    request: RequestOptions,
    as_json: AsJson = False,
) -> None:
    """Show what Forager extracts from one page: text and sections, or a product."""
    if source is not None and kind is ParseKind.PRODUCT:
        raise InvalidInput("--source is for documents")
    if url is not None and "://" in page:
        raise InvalidInput("--url is for files: a page that is fetched has its own address")
    repeated = None
    if source is not None:
        repeated = with_services(context, lambda services: _repeated(services, source))
    if "://" in page:
        response = with_services(
            context, lambda services: fetched_page(services, request.payload(page))
        )
        headers = tuple(response.headers.items())
        content_type = response.headers.get("Content-Type")
        given = _ParsedFile(response.url, response.body, content_type, headers)
    else:
        given = _from_file(page, url)
    if kind_of(given.body, given.content_type, given.url) is ContentKind.OTHER:
        raise GiveUp(
            f"{given.url} is neither HTML nor text: there is nothing to read", kind=ErrorKind.PARSE
        )
    show = (
        _show_product if kind is ParseKind.PRODUCT else partial(_show_document, repeated=repeated)
    )
    show(given, as_json=as_json)


def _from_file(name: str, url: str | None) -> _ParsedFile:
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
    return _ParsedFile(address, body, _TYPES.get(path.suffix.lower()))


async def fetched_page(services: CommandServices, payload: dict[str, Any]) -> Response:
    result = await probe(services.database, services.settings, crawl_options(payload), body=False)
    if result.problem is not None:
        raise GiveUp(f"{result.response.url}: {result.problem}", kind=ErrorKind.HTTP_CLIENT)
    return result.response


async def _repeated(services: CommandServices, source_id: str) -> RepeatedBlocks:
    source = await get_source(services.database, source_id)
    return await repeated_blocks(services.database, source.id) or NOTHING_REPEATED


def _show_product(page: _ParsedFile, *, as_json: bool) -> None:
    parsed = parse_product(open_page(page.body, page.url, page.content_type, page.headers))
    return show_json(product_object(parsed, page.url)) if as_json else show_product(parsed)


def _show_document(page: _ParsedFile, *, as_json: bool, repeated: RepeatedBlocks | None) -> None:
    given = (page.body, page.url, page.content_type, page.headers)
    document = new_document(
        extract_reading(*given, repeated=repeated, explain=repeated is not None)
    )
    if as_json:
        show_json(
            {
                "url": page.url,
                **fields_of(document, "title", "language", "markdown", "sections"),
                **fields_of(document, "truncated", "removed"),
            }
        )
        return
    for cut in document.truncated:
        note(f"cut short: {cut}")
    say(document.title, "bold")
    write(clean(f"\n{document.markdown}\n").encode("utf-8", "replace"))
    if repeated is not None:
        show_removed(document.removed)


def show_removed(removed: Sequence[RemovedBlock]) -> None:
    """Print the blocks that were removed from a page, with the reasons."""
    say(f"removed: {counted(len(removed), 'block')}", "bold")
    for block in removed:
        times = f" ({block.count:,} times)" if block.count > 1 else ""
        say(f"  {block.element}: {on_one_line(block.excerpt)}{times}")
        say(f"    {block.reason}", "dim")


def product_object(parsed: ParsedProduct, url: str) -> dict[str, Any]:
    """One flat object; unknown values are null."""
    product = parsed.product
    return {
        "url": url,
        "is_product": is_product(product),
        "page_confidence": round(product.confidence, 2),
        "name": product.name,
        "description": product.description,
        "price": _money(product.price),
        "list_price": _money(product.list_price),
        "currency": product.currency,
        "availability": product.availability,
        "rating": None if product.rating is None else float(product.rating),
        "review_count": product.review_count,
        "brand": product.brand,
        "category": _SEPARATOR.join(product.category) or None,
        "category_path": product.category,
        **fields_of(product, "sku", "gtin", "mpn", "product_id", "variant_id", "quantity"),
        "images": [image.url for image in product.images],
        "image_details": product.images,
        "variants": [
            {
                **fields_of(variant, "sku", "name"),
                "price": _money(variant.price),
                **fields_of(variant, "currency", "availability", "gtin", "url"),
            }
            for variant in product.variants
        ],
        "confidence": {name: round(e.confidence, 2) for name, e in product.evidence.items()},
        "origins": {name: evidence.origin for name, evidence in product.evidence.items()},
        "parser": parsed.parser,
        "parser_version": parsed.version,
    }


def _money(amount: Decimal | None) -> str | None:
    return None if amount is None else amount_text(amount)


def show_product(parsed: ParsedProduct) -> None:
    product = parsed.product
    if not is_product(product):
        note(f"this hardly looks like the page of one product ({product.confidence:.0%})")
    rows = [
        (name, text, *_evidence(product, name.replace(" ", "_")))
        for name, text in _words(product).items()
        if text
    ]
    show_table({"": {"style": "bold"}, "VALUE": {"cut": True}, "CONFIDENCE": {}, "FROM": {}}, rows)
    note(f"read by {parsed.parser} {parsed.version}")


def _evidence(product: Product, name: str) -> tuple[str, str]:
    evidence = product.evidence.get(name)
    return (f"{evidence.confidence:.0%}", evidence.origin) if evidence else ("", "")


def _words(product: Product) -> dict[str, str]:
    return {
        "name": product.name or "",
        "price": _money(product.price) or "",
        "list price": _money(product.list_price) or "",
        "currency": product.currency or "",
        "availability": product.availability or "",
        "rating": "" if product.rating is None else f"{product.rating.normalize():f} of 5",
        "review count": "" if product.review_count is None else str(product.review_count),
        "brand": product.brand or "",
        "category": _SEPARATOR.join(product.category),
        "sku": product.sku or "",
        "gtin": product.gtin or "",
        "mpn": product.mpn or "",
        "product id": product.product_id or "",
        "variant id": product.variant_id or "",
        "images": "\n".join(image.url for image in product.images[:3]),
        "variants": counted(len(product.variants), "variant") if product.variants else "",
        "description": on_one_line((product.description or "")[:300]),
    }
