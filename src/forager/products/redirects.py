"""Redirects and canonical URLs: a product is stored at the URL of its page.

A URL that was tracked and redirects within its host is an alias of the product at its end. So is
one whose page names a canonical URL, if its GTIN says that both show the same product: variants of
a page often share its canonical URL and its SKU. Two products that turn out to be the same are
merged; the older prices stay in the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from forager.db.database import Connection
from forager.extract.hosts import host_of
from forager.extract.keys import url_hash
from forager.extract.product.product import Product
from forager.extract.urls import Refusal, normalize
from forager.index.kind import PRODUCTS, enqueue_rows
from forager.products.store import redirects as store
from forager.products.store.redirects import KnownIdentity
from forager.products.validation.identity import identity_of, may_be_merged
from forager.products.visit import ParsedPage


@dataclass(frozen=True, slots=True)
class Redirected:
    """A tracked URL that leads to another page, and the product that was stored for it."""

    url: str
    url_hash: bytes
    final_hash: bytes
    product_id: int | None


async def follow_redirects(
    connection: Connection, pages: Sequence[ParsedPage]
) -> tuple[list[ParsedPage], list[Redirected]]:
    """The pages with the URLs of their products, and those that lead to another page."""
    ends = {page.url_hash: end for page in pages if (end := _end(page)) is not None}
    if not ends:
        return list(pages), []
    known = await store.select_identities(
        connection, [*ends, *(url_hash(end.url) for end in ends.values())]
    )
    moved: list[Redirected] = []
    followed = []
    for page in pages:
        end, before = ends.get(page.url_hash), known.get(page.url_hash)
        if end is None or not _leads_there(end, page, before, known):
            followed.append(page)
            continue
        final_hash = url_hash(end.url)
        moved.append(Redirected(page.url, page.url_hash, final_hash, before.id if before else None))
        if before is not None:
            # the next one that leads there would be merged with it
            known.setdefault(final_hash, before)
        followed.append(replace(page, url=end.url, url_hash=final_hash, final_url=None))
    await _rename(connection, moved, {page.url_hash: page.url for page in followed})
    return followed, moved


@dataclass(frozen=True, slots=True)
class _RedirectEnd:
    """Another URL of a page: the end of its redirects, or its canonical URL."""

    url: str
    is_canonical: bool = False


def _end(page: ParsedPage) -> _RedirectEnd | None:
    """The URL to store a product page at, if it is another one of the same host."""
    if page.product is None or page.role != "active":
        return None
    canonical = _other_url(page, page.canonical)
    if canonical is not None and _names_same_page(page.final_url or page.url, canonical):
        return _RedirectEnd(canonical, is_canonical=True)
    final = _other_url(page, page.final_url)
    return None if final is None else _RedirectEnd(final)


def _other_url(page: ParsedPage, url: str | None) -> str | None:
    end = None if url is None else normalize(url)
    if end is None or isinstance(end, Refusal) or url_hash(end) == page.url_hash:
        return None
    return end if _shop(end) == _shop(page.url) else None


def _names_same_page(url: str, canonical: str) -> bool:
    """Whether only queries and folders differ; templates may refer to front pages."""
    last = [urlsplit(each).path.rstrip("/").rpartition("/")[2] for each in (url, canonical)]
    return bool(last[0]) and last[0] == last[1]


def _leads_there(
    end: _RedirectEnd,
    page: ParsedPage,
    before: KnownIdentity | None,
    known: dict[bytes, KnownIdentity],
) -> bool:
    product, final_hash = page.product, url_hash(end.url)
    if not _is_same(before, final_hash, product):
        return False
    there = known.get(final_hash)
    if before is not None and there is not None and there.id != before.id:
        identity = identity_of(product)
        if identity is None or not may_be_merged(before.identity, identity):
            return False
    if not end.is_canonical:
        return True
    if product is None or product.gtin is None:
        return False
    if there is None:
        # of several such pages in a batch, the first one decides
        known[final_hash] = KnownIdentity.of_page(final_hash, product)
        return True
    is_alias = before is not None and before.own_hash == final_hash
    return _has_same_codes(product, there) and (is_alias or product.price == there.price)


def _has_same_codes(product: Product, known: KnownIdentity) -> bool:
    skus = (product.sku, known.sku)
    return product.gtin == known.gtin and (None in skus or skus[0] == skus[1])


def _shop(url: str) -> str:
    return host_of(url).removeprefix("www.")


def _is_same(known: KnownIdentity | None, final_hash: bytes, product: Product | None) -> bool:
    """Whether the page shows the known product; shops also redirect to other pages."""
    if product is None or not product.name:
        return False
    if known is None or known.own_hash == final_hash:
        return True
    return (
        product.name.strip().casefold() == known.product_name.casefold()
        or (product.gtin is not None and product.gtin == known.gtin)
        or (product.sku is not None and product.sku == known.sku)
    )


async def _rename(
    connection: Connection, moved: Sequence[Redirected], urls: Mapping[bytes, str]
) -> None:
    """Rename the first of several products that moved to one URL; the others are merged later."""
    first = {each.final_hash: each.product_id for each in reversed(moved) if each.product_id}
    places = {product_id: (urls[hash_], hash_) for hash_, product_id in first.items()}
    if places:
        await store.rename_products(connection, places)


async def record_redirects(
    connection: Connection, moved: Sequence[Redirected], written: Mapping[bytes, int]
) -> None:
    """Merge identical products, and store the aliases; `written`: IDs by URL."""
    ends = [(each, written[each.final_hash]) for each in moved if each.final_hash in written]
    merged = {each.product_id: into for each, into in ends if each.product_id is not None}
    merged = {product_id: into for product_id, into in merged.items() if product_id != into}
    for product_id, into in merged.items():
        await store.merge_product(connection, product_id, into)
    if merged:
        await enqueue_rows(connection, PRODUCTS, list(merged))
    if ends:
        await store.insert_aliases(
            connection, {each.url_hash: (each.url, into) for each, into in ends}
        )
