"""SQL that writes products: rows are made and locked by one statement, in the order of their keys.

Every batch locks its rows in this order, so that two batches cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, LiteralString

from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows, Tuples, Values
from forager.db.text_search import readable_words
from forager.products.content import CATEGORY_SEPARATOR, ProductContent
from forager.products.store.prices import CHANGE_TO
from forager.products.validation.plausibility import Offer


@dataclass(frozen=True, slots=True)
class ProductRow:
    """One product as a visit found it; objects are JSON texts."""

    task_id: int
    domain_id: int
    url: str
    url_hash: bytes
    content: ProductContent
    content_hash: bytes
    evidence: str
    problems: str
    metadata: str
    parser: str
    version: str
    language: str | None
    # the text search configuration, and lexemes for filters, one per line
    config: str
    marks: str


@dataclass(frozen=True, slots=True)
class KnownProduct:
    """The locked row of a product: as it was before this visit, or just inserted."""

    id: int
    url_hash: bytes
    is_new: bool
    is_indexed: bool
    content_hash: bytes
    price: Decimal | None
    list_price: Decimal | None
    currency: str | None
    availability: str | None
    sku: str | None
    gtin: str | None
    parser: str
    parser_version: str
    # where its price was read
    price_origin: str | None
    problems: list[dict[str, Any]]
    variants: list[dict[str, Any]]
    # to another domain than it had
    moved: bool
    # prices that a user marked as wrong
    rejected: list[Decimal] | None

    @property
    def offer(self) -> Offer:
        """The offer that is stored."""
        return Offer(self.price, self.list_price, self.currency, self.availability)


async def select_usual_currencies(
    connection: Connection,
    domain_ids: Sequence[int],
    *,
    least: int,
    share: float,
    origins: Sequence[str] | None = None,
) -> dict[int, str]:
    """The currency of nearly all products of each domain with at least `least` of them.

    `origins`: only of products whose currency was read from these places.
    """
    return await Tuples(connection).as_dict(
        """
        SELECT d.id, found.currency
          FROM unnest(%(ids)s::bigint[]) AS d (id)
         CROSS JOIN LATERAL (
            SELECT mode() WITHIN GROUP (ORDER BY r.currency) AS currency, count(*) AS products,
                   array_agg(r.currency) AS currencies
              FROM (SELECT currency FROM products
                     WHERE domain_id = d.id AND currency IS NOT NULL
                       AND (%(origins)s::text[] IS NULL
                            OR split_part(evidence -> 'currency' ->> 'origin', ':', 1)
                               = ANY(%(origins)s))
                     ORDER BY created_at DESC, id DESC LIMIT 100) AS r
         ) AS found
         WHERE found.products >= %(least)s
           AND %(share)s * found.products
               <= cardinality(array_positions(found.currencies, found.currency))
        """,
        {
            "ids": list(domain_ids),
            "least": least,
            "share": share,
            "origins": None if origins is None else list(origins),
        },
    )


async def select_currencies(
    connection: Connection, domain_ids: Sequence[int]
) -> dict[int, str | None]:
    """The currency that was set for each domain."""
    return await Tuples(connection).as_dict(
        "SELECT id, currency FROM domains WHERE id = ANY(%s)", (list(domain_ids),)
    )


_NAMES: LiteralString = "concat_ws(' ', r.brand, r.category, r.sku, r.gtin)"
_DESCRIPTION: LiteralString = "coalesce(left(r.description, 20000), '')"
# the searched fields, the most important first
_VECTOR: LiteralString = f"""
    setweight(to_tsvector(r.config::regconfig, {readable_words("r.product_name")}), 'A')
    || setweight(to_tsvector(r.config::regconfig, {readable_words(_NAMES)}), 'B')
    || setweight(to_tsvector(r.config::regconfig, {readable_words(_DESCRIPTION)}), 'C')
    || array_to_tsvector(string_to_array(r.marks, E'\\n'))
"""

_PRODUCTS = RowArrays(
    "r", price="numeric", list_price="numeric", currency="text", availability="text",
    rating="numeric", review_count="bigint", brand="text", category="text", sku="text",
    gtin="text", language="text", task_id="bigint", domain_id="bigint", url="text",
    url_hash="bytea", product_name="text", description="text", variants="text",
    content_hash="bytea", evidence="text", problems="text", metadata="text", parser="text",
    version="text", config="text", marks="text",
)  # fmt: skip


# of a price from any text, a model, or none, after a known place; and until a price is accepted
_KEEPS_EVIDENCE: LiteralString = """
    p.evidence ? 'price'
    AND (excluded.price IS DISTINCT FROM p.price
         OR coalesce(excluded.evidence -> 'price' ->> 'origin', 'dom:text')
                ~ '^(dom:text$|model:)'
            AND p.evidence -> 'price' ->> 'origin' !~ '^(dom:text$|model:)')
"""


async def visit_products(
    connection: Connection, rows: Sequence[ProductRow]
) -> dict[bytes, KnownProduct]:
    """Insert the products that are new, mark the others as seen, and lock them all.

    Content and problems of those that were known stay as they are, and come back. A vector is
    made only for rows that are not there yet.
    """
    found = await Rows(connection, KnownProduct).all(
        f"""
        INSERT INTO products AS p (
            domain_id, crawl_task_id, url, url_hash, product_name, description, price, list_price,
            currency, availability, rating, review_count, brand, category, sku, gtin, variants,
            content_hash, evidence, problems, metadata, parser, parser_version, language, tsv
        )
        SELECT domain_id, task_id, url, url_hash, product_name, description, price, list_price,
               currency, availability, rating, review_count, brand, category, sku, gtin,
               variants::jsonb, content_hash, evidence::jsonb, problems::jsonb, metadata::jsonb,
               parser, version, language,
               CASE WHEN EXISTS (SELECT FROM products k WHERE k.url_hash = r.url_hash)
                    THEN ''::tsvector
                    ELSE {_VECTOR}
               END
          FROM {_PRODUCTS}
         ORDER BY url_hash
            ON CONFLICT (url_hash) DO UPDATE
           SET last_seen_at = now(),
               domain_id = excluded.domain_id,
               crawl_task_id = excluded.crawl_task_id,
               evidence = CASE WHEN {_KEEPS_EVIDENCE}
                               THEN excluded.evidence
                                    || jsonb_build_object('price', p.evidence -> 'price')
                               ELSE excluded.evidence END,
               metadata = excluded.metadata,
               parser = excluded.parser,
               parser_version = excluded.parser_version,
               language = excluded.language
        RETURNING id, url_hash, p.xmax = 0 AS is_new, p.tsv <> '' AS is_indexed, content_hash,
                  price, list_price, currency, availability, sku, gtin, problems, variants,
                  -- subqueries see the row as it was
                  coalesce((SELECT k.parser FROM products k WHERE k.id = p.id), p.parser) AS parser,
                  coalesce((SELECT k.parser_version FROM products k WHERE k.id = p.id),
                           p.parser_version) AS parser_version,
                  (SELECT k.evidence -> 'price' ->> 'origin' FROM products k WHERE k.id = p.id)
                      AS price_origin,
                  coalesce((SELECT k.domain_id FROM products k WHERE k.id = p.id)
                           <> p.domain_id, false) AS moved,
                  (SELECT array_agg(w.price) FROM withheld_prices w
                    WHERE w.product_id = p.id AND w.outcome = 'wrong') AS rejected
        """,
        _columns(rows),
    )
    return {known.url_hash: known for known in found}


@dataclass(frozen=True, slots=True)
class KeptFields:
    """Fields of a product that are not part of its offer, as a reading has them."""

    name: str
    description: str | None
    rating: Decimal | None
    review_count: int | None
    brand: str | None
    category: tuple[str, ...]


async def select_kept_fields(
    connection: Connection, product_ids: Sequence[int]
) -> dict[int, KeptFields]:
    """Stored fields of products that a new reading may lack."""
    cursor = await connection.execute(
        """
        SELECT id, product_name, description, rating, review_count, brand, category
          FROM products WHERE id = ANY(%s)
        """,
        (list(product_ids),),
    )
    return {
        row[0]: KeptFields(
            row[1],
            row[2],
            row[3],
            row[4],
            row[5],
            tuple(row[6].split(CATEGORY_SEPARATOR)) if row[6] else (),
        )
        for row in await cursor.fetchall()
    }


async def update_content(
    connection: Connection, rows: Sequence[ProductRow], *, money_changed: Sequence[bool]
) -> None:
    """Store the content of rows that this transaction has locked; `updated_at` changes."""
    change = CHANGE_TO.format(price="r.price", currency="r.currency")
    await connection.execute(
        f"""
        UPDATE products p
           SET product_name = r.product_name,
               description = r.description,
               price = r.price,
               list_price = r.list_price,
               currency = r.currency,
               availability = r.availability,
               rating = r.rating,
               review_count = r.review_count,
               brand = r.brand,
               category = r.category,
               sku = r.sku,
               gtin = r.gtin,
               variants = r.variants::jsonb,
               content_hash = r.content_hash,
               problems = r.problems::jsonb,
               evidence = CASE WHEN m.changed AND r.price IS NOT NULL THEN r.evidence::jsonb
                               ELSE p.evidence END,
               tsv = {_VECTOR},
               updated_at = statement_timestamp(),
               price_changed_at = CASE WHEN m.changed THEN statement_timestamp()
                                       ELSE p.price_changed_at END,
               price_change = CASE WHEN (r.price, r.currency) IS NOT DISTINCT FROM
                                        (p.price, p.currency) THEN p.price_change
                                   ELSE {change} END
          FROM {_PRODUCTS}
          JOIN unnest(%(url_hash)s::bytea[], %(money_changed)b::boolean[])
               AS m (url_hash, changed) USING (url_hash)
         WHERE p.url_hash = r.url_hash
        """,
        {**_columns(rows), "money_changed": list(money_changed)},
    )


async def update_problems(connection: Connection, problems: Mapping[int, str]) -> None:
    """Replace the problems of products whose content has not changed."""
    await connection.execute(
        """
        UPDATE products p
           SET problems = r.problems::jsonb
          FROM unnest(%s::bigint[], %s::text[]) AS r (id, problems)
         WHERE p.id = r.id
        """,
        (list(problems), list(problems.values())),
    )


async def touch_products(connection: Connection, task_ids: Sequence[int]) -> list[int]:
    """Mark the products of unchanged pages as seen; returns their ids."""
    return await Values(connection).all(
        """
        WITH seen AS (
            SELECT id
              FROM products
             WHERE crawl_task_id = ANY(%s)
             ORDER BY url_hash
               FOR NO KEY UPDATE
        )
        UPDATE products SET last_seen_at = now() WHERE id IN (SELECT id FROM seen)
        RETURNING id
        """,
        (list(task_ids),),
    )


def _columns(rows: Sequence[ProductRow]) -> dict[str, Any]:
    columns: dict[str, str | list[Any]] = {
        name: f"content.{name}" for name in ProductContent.__slots__
    }
    columns["description"] = [row.content.description or None for row in rows]
    return _PRODUCTS.values(rows, **columns)


@dataclass(frozen=True, slots=True)
class WithdrawnProduct:
    """A product before its withdrawal."""

    id: int
    domain_id: int
    url: str
    product_name: str
    availability: str | None


async def withdraw_products(
    connection: Connection, task_ids: Sequence[int], availability: str
) -> list[WithdrawnProduct]:
    """Give products of tasks another availability, with a row in their history.

    The content hash becomes one that no page has: whatever is read next is a change.
    """
    return await Rows(connection, WithdrawnProduct).all(
        """
        WITH was AS MATERIALIZED (
            SELECT id, domain_id, url, product_name, availability, price, list_price, currency
              FROM products
             WHERE crawl_task_id = ANY(%(ids)s)
               AND availability IS DISTINCT FROM %(availability)s
             ORDER BY url_hash
               FOR NO KEY UPDATE
        ), moved AS (
            UPDATE products p
               SET availability = %(availability)s, content_hash = sha256(p.content_hash),
                   updated_at = now()
              FROM was
             WHERE p.id = was.id
        ), noted AS (
            INSERT INTO price_history (product_id, price, list_price, currency, availability)
            SELECT id, price, list_price, currency, %(availability)s FROM was
        )
        SELECT id, domain_id, url, product_name, availability FROM was
        """,
        {"ids": list(task_ids), "availability": availability},
    )
