"""SQL of extractions: what each visit made of its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from forager.db.database import Connection


@dataclass(frozen=True, slots=True)
class NewExtraction:
    """A row of `extractions`; objects are JSON already."""

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


async def insert_extractions(connection: Connection, rows: Sequence[NewExtraction]) -> None:
    await connection.execute(
        """
        INSERT INTO extractions (
            task_id, product_id, domain_id, url, parser, parser_version, role, outcome, confidence,
            fields, evidence, problems, error_message, segment, segment_offset, segment_length
        )
        SELECT task_id, product_id, domain_id, url, parser, parser_version, role, outcome,
               confidence, fields::jsonb, evidence::jsonb, problems::jsonb, error_message, segment,
               segment_offset, segment_length
          FROM unnest(%(task_id)b::bigint[], %(product_id)s::bigint[], %(domain_id)b::bigint[],
                      %(url)b::text[], %(parser)b::text[], %(parser_version)b::text[],
                      %(role)b::text[], %(outcome)b::text[], %(confidence)s::float8[],
                      %(fields)b::text[], %(evidence)b::text[], %(problems)b::text[],
                      %(error_message)s::text[], %(segment)s::text[], %(segment_offset)s::bigint[],
                      %(segment_length)s::int[])
               WITH ORDINALITY
            AS e (task_id, product_id, domain_id, url, parser, parser_version, role, outcome,
                  confidence, fields, evidence, problems, error_message, segment, segment_offset,
                  segment_length, place)
         ORDER BY place
        """,
        {field.name: [getattr(row, field.name) for row in rows] for field in fields(NewExtraction)},
    )
