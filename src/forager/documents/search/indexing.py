"""Search rows of sections, written inside the commit that writes the sections.

The vectors are made by PostgreSQL, with the configuration that queries are read with. The words of
a heading count wherever they are looked for; the title is a heading of the page's first section.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString

from forager.db.database import Connection
from forager.documents.store.vectors import source_lexeme
from forager.extract.identifiers import identifier_lexemes


@dataclass(frozen=True, slots=True)
class SectionToIndex:
    """A section whose document has its id."""

    document_id: int
    position: int
    heading: str
    content: str
    # of the page, for its first section
    title: str | None = None


_INDEX_SECTIONS: LiteralString = """
    INSERT INTO section_search (document_id, position, head_tsv, tsv)
    SELECT document_id, position,
           head || array_to_tsvector(string_to_array(head_names, E'\\n')) || source,
           setweight(head, 'A') || to_tsvector(config, content)
           || array_to_tsvector(string_to_array(names, E'\\n')) || source
      FROM unnest(%(documents)b::bigint[], %(positions)b::bigint[], %(heads)b::text[],
                  %(contents)b::text[], %(head_names)b::text[], %(names)b::text[])
           AS s (document_id, position, heading, content, head_names, names),
           LATERAL (SELECT %(config)s::text::regconfig AS config) c,
           LATERAL (SELECT to_tsvector(config, heading) AS head,
                           array_to_tsvector(%(mark)s::text[]) AS source
                    OFFSET 0) v
"""


async def index_sections(
    connection: Connection, source_number: int, config: str, rows: Sequence[SectionToIndex]
) -> None:
    """Make sections searchable. Fetches nothing, so it can be part of a pipeline."""
    heads = [heading_text(row) for row in rows]
    await connection.execute(
        _INDEX_SECTIONS,
        {
            "config": config,
            "mark": [source_lexeme(source_number)],
            "documents": [row.document_id for row in rows],
            "positions": [row.position for row in rows],
            "heads": heads,
            "contents": [row.content for row in rows],
            "head_names": ["\n".join(identifier_lexemes(head)) for head in heads],
            "names": [
                "\n".join(identifier_lexemes(f"{head}\n{row.content}"))
                for head, row in zip(heads, rows, strict=True)
            ],
        },
    )


def heading_text(row: SectionToIndex) -> str:
    """The heading with the title before it, where there is one that says something else."""
    if row.title is None or row.position or row.title == row.heading:
        return row.heading
    return f"{row.title}\n{row.heading}"
