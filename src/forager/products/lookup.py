"""Which product somebody means: by its id, or by its URL."""

from __future__ import annotations

from forager.db.database import Connection
from forager.errors import InvalidInput, NotFound
from forager.extract.keys import url_hash
from forager.extract.urls import Refusal, normalise
from forager.hints import Hint, action
from forager.products.store import records as store

_LARGEST_ID = 2**63 - 1


async def find_product(connection: Connection, which: str) -> int:
    """The id of a product that is there."""
    text = which.strip()
    if text.isascii() and text.isdigit():
        product_id = int(text[:20])
        if product_id > _LARGEST_ID or not await store.product_exists(connection, product_id):
            raise unknown_product(which)
        return product_id
    address = normalise(text)
    if isinstance(address, Refusal):
        raise InvalidInput(f"{text[:200]!r} is neither the id nor the URL of a product")
    found = await store.select_product_id(connection, url_hash(address))
    return found if found is not None else await _not_yet(connection, which, address)


async def _not_yet(connection: Connection, which: str, address: str) -> int:
    status = await store.select_task_status(connection, url_hash(address))
    if status is None:
        raise unknown_product(which)
    raise NotFound(
        f"{address} is tracked, but no product was read from it yet; its task is {status}",
        hint=Hint("{} shows its attempts.", action("tasks show", address)),
    )


def unknown_product(which: str) -> NotFound:
    return NotFound(
        f"there is no product {which[:200]}",
        hint=Hint(
            "{} lists products, {} adds more.", action("products list"), action("products track")
        ),
    )
