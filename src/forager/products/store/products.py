"""SQL of one product: its row, its images, and the outcomes of its visits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forager.db.database import Connection
from forager.db.rows import RowArrays, Rows, Tuples, Values
from forager.products.product import AttemptRecord, ExtractionRecord, ImageRecord, ProductRecord


async def select_product(connection: Connection, product_id: int) -> ProductRecord | None:
    """A product with everything that is known of it."""
    return await Rows(connection, ProductRecord).first(
        """
        SELECT p.id, p.url, d.domain_name AS domain, p.product_name AS name, p.description,
               p.price, p.list_price, p.currency, p.availability, p.rating, p.review_count,
               p.brand, p.category, p.sku, p.gtin, p.variants, p.evidence, p.problems,
               p.metadata, p.parser, p.parser_version, p.language, p.created_at, p.updated_at,
               p.last_seen_at, p.price_changed_at, t.id AS task_id, t.status AS task_status,
               coalesce(t.hold, d.task_hold, c.hold) AS task_hold,
               t.error_message AS task_error, t.failing_since,
               coalesce(t.adapted_frequency, t.crawl_frequency, d.crawl_frequency)
                   AS crawl_frequency,
               CASE WHEN t.status = 'pending' THEN t.scheduled_at
                    WHEN t.status = 'completed' THEN t.next_crawl_at
               END AS next_crawl_at
          FROM products p
          JOIN domains d ON d.id = p.domain_id
          LEFT JOIN crawl_tasks t ON t.id = p.crawl_task_id
          LEFT JOIN task_control c ON true
         WHERE p.id = %s
        """,
        (product_id,),
    )


async def select_product_id(connection: Connection, url_hash: bytes) -> int | None:
    """The product of a URL, also of one that redirects to its page."""
    return await Values(connection).first(
        """
        SELECT id FROM products WHERE url_hash = %(hash)s
        UNION ALL
        SELECT product_id FROM product_aliases WHERE url_hash = %(hash)s
         LIMIT 1
        """,
        {"hash": url_hash},
    )


async def product_exists(connection: Connection, product_id: int) -> bool:
    """Whether there is a product with this ID."""
    return await Tuples(connection).exists("SELECT FROM products WHERE id = %s", (product_id,))


async def select_task_status(connection: Connection, url_hash: bytes) -> str | None:
    """The state of the task of a URL."""
    return await Values(connection).first(
        "SELECT status FROM crawl_tasks WHERE url_hash = %s", (url_hash,)
    )


async def select_images(connection: Connection, product_id: int) -> list[ImageRecord]:
    """The images of a product in the order of its page."""
    return await Rows(connection, ImageRecord).all(
        """
        SELECT image_url AS url, image_type AS type, position, alt_text,
               -- one that is fetched again is shown as it was
               CASE WHEN content_hash IS NULL THEN status ELSE 'stored' END AS status,
               problem, width, height, file_size, image_path AS path
          FROM images
         WHERE product_id = %s
         ORDER BY position, id
         LIMIT 1000
        """,
        (product_id,),
    )


async def select_attempts(connection: Connection, task_id: int, limit: int) -> list[AttemptRecord]:
    """The last attempts of a task, newest first."""
    return await Rows(connection, AttemptRecord).all(
        """
        SELECT stage, attempt,
               CASE outcome WHEN 'held' THEN 'withheld' WHEN 'rested' THEN 'deferred'
                            WHEN 'withdrawn' THEN 'canceled' WHEN 'lost' THEN 'worker_lost'
                            ELSE outcome END AS outcome,
               error_kind, error_message, http_status, final_url, proxy_id, worker_id,
               started_at, finished_at, duration_ms, size
          FROM task_attempts
         WHERE task_id = %s
         ORDER BY id DESC
         LIMIT %s
        """,
        (task_id, limit),
    )


async def select_extractions(
    connection: Connection, task_id: int, limit: int
) -> list[ExtractionRecord]:
    """The last extractions of a task, newest first."""
    return await Rows(connection, ExtractionRecord).all(
        """
        SELECT id, parser, parser_version, role, outcome, confidence, problems, error_message,
               segment || ':' || segment_offset || ':' || segment_length AS archive, created_at
          FROM extractions
         WHERE task_id = %s
         ORDER BY id DESC
         LIMIT %s
        """,
        (task_id, limit),
    )


@dataclass(frozen=True, slots=True)
class NewExtraction:
    """A row of `extractions`; objects are JSON texts."""

    task_id: int
    product_id: int | None
    domain_id: int
    url: str
    parser: str
    parser_version: str
    role: str
    outcome: str
    confidence: float | None
    fields: str
    evidence: str
    problems: str
    error_message: str | None
    segment: str | None
    segment_offset: int | None
    segment_length: int | None


_EXTRACTIONS = RowArrays(
    "e", task_id="bigint", product_id="bigint", domain_id="bigint", url="text", parser="text",
    parser_version="text", role="text", outcome="text", confidence="float8", fields="text",
    evidence="text", problems="text", error_message="text", segment="text",
    segment_offset="bigint", segment_length="int",
)  # fmt: skip


async def insert_extractions(connection: Connection, rows: Sequence[NewExtraction]) -> None:
    """Log extractions, and return nothing: their IDs are in the order of the rows."""
    await connection.execute(
        f"""
        INSERT INTO extractions ({_EXTRACTIONS.columns})
        SELECT task_id, product_id, domain_id, url, parser, parser_version, role, outcome,
               confidence, fields::jsonb, evidence::jsonb, problems::jsonb, error_message, segment,
               segment_offset, segment_length
          FROM {_EXTRACTIONS.unnest} WITH ORDINALITY AS e ({_EXTRACTIONS.columns}, place)
         ORDER BY place
        """,
        _EXTRACTIONS.values(rows),
    )
