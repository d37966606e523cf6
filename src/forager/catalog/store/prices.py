"""SQL of price histories."""

from __future__ import annotations

from collections.abc import Mapping

from forager.catalog.plausibility import Offer
from forager.db.database import Connection


async def insert_changes(connection: Connection, offers: Mapping[int, Offer]) -> None:
    """One row for each product whose offer is new.

    The time is the statement's, not the transaction's: the products are locked by now, and of two
    writers the second must not be dated before the first.
    """
    await connection.execute(
        """
        INSERT INTO price_history (product_id, price, list_price, currency, availability,
                                   recorded_at)
        SELECT product_id, price, list_price, currency, availability, statement_timestamp()
          FROM unnest(%s::bigint[], %s::numeric[], %s::numeric[], %s::text[], %s::text[])
            AS c (product_id, price, list_price, currency, availability)
         ORDER BY product_id
        """,
        (
            list(offers),
            [offer.price for offer in offers.values()],
            [offer.list_price for offer in offers.values()],
            [offer.currency for offer in offers.values()],
            [offer.availability for offer in offers.values()],
        ),
    )
