"""A shop without pages: products go straight to the writer, as a parse stage hands them over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from forager.archive.segment import ArchiveRef
from forager.db.database import Database
from forager.extract.keys import url_hash
from forager.extract.product.product import Availability, Evidence, Product
from forager.products.writer import ParsedPage, Written, write_pages
from forager.settings import Settings
from support.sql import fetch_row

HOST = "shop.example"
HISTORY = """
    SELECT price, list_price, currency, availability FROM price_history ORDER BY recorded_at, id
"""
EVENTS = "SELECT kind, payload FROM catalog_events ORDER BY id"
MOMENTS = (
    "SELECT created_at, updated_at, last_seen_at, price_changed_at, content_hash FROM products"
)
LAMP = Product(
    name="Brass Desk Lamp",
    description="A heavy lamp of brass for reading at night.",
    price=Decimal("49.90"),
    list_price=Decimal("59.90"),
    currency="EUR",
    availability=Availability.IN_STOCK,
    rating=Decimal("4.5"),
    review_count=12,
    brand="Lumen & Sons",
    category=("Home", "Lighting", "Desk lamps"),
    sku="BL-100",
    gtin="4006381333931",
    evidence={"price": Evidence(0.9, "json-ld:Product"), "name": Evidence(0.8, "dom:h1")},
    confidence=0.9,
)


def lamp(price: str | None = "49.90", **changes: Any) -> Product:
    amount = None if price is None else Decimal(price)
    return replace(LAMP, **{"price": amount, "list_price": None, **changes})


@dataclass(slots=True)
class Shop:
    """Visits pages: each visit is another record in the archive, unless it says otherwise."""

    database: Database
    settings: Settings
    host: str = HOST
    language: str | None = "en"
    domain_id: int = 0
    _tasks: dict[str, int] = field(default_factory=dict)
    _visits: int = 0

    async def open(self, currency: str | None = None) -> Shop:
        row = await fetch_row(
            self.database,
            """
                INSERT INTO domains (domain_name, base_url, currency) VALUES (%s, %s, %s)
                RETURNING id
                """,
            self.host,
            f"https://{self.host}/",
            currency,
        )
        self.domain_id = row[0]
        return self

    def url(self, name: str) -> str:
        return f"https://{self.host}/{name}"

    async def page(self, name: str, product: Product | None, **changes: Any) -> ParsedPage:
        url = self.url(name)
        self._visits += 1
        page = ParsedPage(
            task_id=await self.task(name),
            domain_id=self.domain_id,
            url=url,
            url_hash=url_hash(url),
            final_url=None,
            parser="generic",
            version="1",
            product=product,
            error=None if product is not None else "the parser broke",
            language=self.language,
            ref=ArchiveRef("segment", self._visits * 100, 100),
        )
        return replace(page, **changes)

    async def task(self, name: str) -> int:
        if name not in self._tasks:
            url = self.url(name)
            row = await fetch_row(
                self.database,
                """
                    INSERT INTO crawl_tasks (domain_id, url, url_hash) VALUES (%s, %s, %s)
                    RETURNING id
                    """,
                self.domain_id,
                url,
                url_hash(url),
            )
            self._tasks[name] = row[0]
        return self._tasks[name]

    async def write(self, *pages: ParsedPage) -> list[Written]:
        async with self.database.transaction() as connection:
            return await write_pages(connection, pages, settings=self.settings)

    async def visit(self, name: str, product: Product | None, **changes: Any) -> Written:
        [written] = await self.write(await self.page(name, product, **changes))
        return written

    async def stock(self, products: dict[str, Product]) -> list[Written]:
        return await self.write(*[await self.page(name, made) for name, made in products.items()])

    async def rows(self, statement: Any, *values: object) -> Sequence[tuple[Any, ...]]:
        async with self.database.connection() as connection:
            cursor = await connection.execute(statement, values)
            return await cursor.fetchall()

    async def row(self, statement: Any, *values: object) -> tuple[Any, ...]:
        [row] = await self.rows(statement, *values)
        return row
