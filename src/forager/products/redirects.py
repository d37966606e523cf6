"""Redirects: a product is stored at the URL of its page, and found by URLs that lead there.

A URL that was tracked and redirects within its host is an alias of the product at its end. Two
products that turn out to be the same are merged; the older prices stay in the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from forager.db.database import Connection
from forager.extract.hosts import host_of
from forager.extract.keys import url_hash
from forager.extract.product.record import Product
from forager.extract.urls import Refusal, normalise
from forager.index.kind import PRODUCTS
from forager.index.store import enqueue_rows
from forager.products.store import redirects as store
from forager.products.store.redirects import KnownIdentity
from forager.products.visit import ReadPage


@dataclass(frozen=True, slots=True)
class Redirected:
    """A tracked URL whose page is at another one, and the product that was stored for it."""

    url: str
    url_hash: bytes
    final_hash: bytes
    product_id: int | None


async def follow_redirects(
    connection: Connection, pages: Sequence[ReadPage]
) -> tuple[list[ReadPage], list[Redirected]]:
    """The pages at the URLs where their redirects end, and which of them were redirected."""
    ends = {page.url_hash: end for page in pages if (end := _end(page)) is not None}
    if not ends:
        return list(pages), []
    known = await store.select_identities(connection, list(ends))
    moved: list[Redirected] = []
    followed = []
    for page in pages:
        end, before = ends.get(page.url_hash), known.get(page.url_hash)
        final_hash = None if end is None else url_hash(end)
        if end is None or final_hash is None or not _is_same(before, final_hash, page.product):
            followed.append(page)
            continue
        moved.append(Redirected(page.url, page.url_hash, final_hash, before.id if before else None))
        followed.append(replace(page, url=end, url_hash=final_hash, final_url=None))
    await _rename(connection, moved, {page.url_hash: page.url for page in followed})
    return followed, moved


def _end(page: ReadPage) -> str | None:
    """Where the redirects of a product page ended, if that is another page of the same host."""
    if page.final_url is None or page.product is None or page.role != "active":
        return None
    end = normalise(page.final_url)
    if isinstance(end, Refusal) or url_hash(end) == page.url_hash:
        return None
    return end if _shop(end) == _shop(page.url) else None


def _shop(url: str) -> str:
    return host_of(url).removeprefix("www.")


def _is_same(known: KnownIdentity | None, final_hash: bytes, product: Product | None) -> bool:
    """Whether the page shows the product that is known; shops also redirect to other pages."""
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
    """Of several products that moved to one URL, the first takes it; the others are merged."""
    first = {each.final_hash: each.product_id for each in reversed(moved) if each.product_id}
    places = {product_id: (urls[hash_], hash_) for hash_, product_id in first.items()}
    if places:
        await store.rename_products(connection, places)


async def record_redirects(
    connection: Connection, moved: Sequence[Redirected], written: Mapping[bytes, int]
) -> None:
    """Merge products that are the same, and remember the URLs; `written` are IDs by URL."""
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
