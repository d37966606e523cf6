"""A million sections from real text: chunks are indexed once and combined at random."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
from selectolax.lexbor import LexborHTMLParser, LexborNode

from forager.extract.identifiers import identifier_lexemes

CONFIG = "english"
SOURCES = 4
SECTIONS_PER_PAGE = 10
MAX_FILES = 2_000
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_WORD = re.compile(r"[A-Za-z]{3,}")

Connection = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class RealText:
    """Headings and texts of real pages."""

    headings: list[str]
    texts: list[str]

    def two_words(self, count: int, chance: random.Random) -> list[str]:
        """Queries of two words, half from texts and half from headings, so that they have hits."""
        pairs: list[str] = []
        while len(pairs) < count:
            pool = self.texts if len(pairs) % 2 else self.headings
            words = _WORD.findall(chance.choice(pool))
            if len(words) >= 2:
                at = chance.randrange(len(words) - 1)
                pairs.append(f"{words[at]} {words[at + 1]}")
        return pairs

    def names(self, count: int, chance: random.Random) -> list[str]:
        """Identifiers that occur in the texts."""
        known = sorted({name for text in self.texts for name in identifier_lexemes(text)})
        return [chance.choice(known) for _ in range(count)] if known else []


def read_folder(folder: Path) -> RealText:
    headings: list[str] = []
    texts: list[str] = []
    for path in sorted(folder.rglob("*.html"))[:MAX_FILES]:
        page = LexborHTMLParser(path.read_text(encoding="utf-8", errors="replace"))
        for heading, text in _sections(page.body):
            if heading and len(text) > 100:
                headings.append(heading)
                texts.append(text)
    return RealText(headings, texts)


def _sections(body: LexborNode | None) -> Iterator[tuple[str, str]]:
    heading = ""
    parts: list[str] = []
    for node in body.traverse(include_text=True) if body else ():
        if node.tag in _HEADINGS:
            yield heading, "\n".join(parts)
            heading, parts = " ".join(node.text().split()), []
        elif node.tag == "-text" and (text := node.text(deep=False)) and not text.isspace():
            parts.append(text)
    yield heading, "\n".join(parts)


# --- the database ----------------------------------------------------------------------------

_POOL: LiteralString = """
    CREATE TABLE pool AS
    SELECT n::int, heading, content, to_tsvector('english', heading) AS head,
           to_tsvector('english', content)
           || array_to_tsvector(string_to_array(names, E'\\n')) AS body
      FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY
           AS p (heading, content, names, n);
    CREATE UNIQUE INDEX ON pool (n)
"""
_SOURCES: LiteralString = """
    INSERT INTO sources (id, base_url, kind, payload, text_config)
    SELECT 'source' || n, 'https://source' || n || '.example/', 'crawl', '{}', 'english'
      FROM generate_series(1, %(sources)s) n;
    INSERT INTO generations (source_id, number, state, published_at)
    SELECT s.id, n, CASE WHEN n = 3 THEN 'published' ELSE 'retired' END, now()
      FROM sources s, generate_series(1, 3) n;
    UPDATE sources s SET published_generation = g.id
      FROM generations g WHERE g.source_id = s.id AND g.state = 'published'
"""
# Three fifths of the pages are from the first generation. Each refresh finds a random third of the
# pages changed, so that published sections are spread over the whole table.
_DOCUMENTS: LiteralString = """
    CREATE TABLE page AS
    SELECT n, 1 + n %% %(sources)s AS source, born,
           CASE WHEN born = 3 THEN 3
                WHEN born = 1 AND random() < 1.0 / 3 THEN 1
                WHEN random() < 1.0 / 3 THEN 2
                ELSE 3
           END AS last,
           path, 'https://source' || 1 + n %% %(sources)s || '.example' || path AS url
      FROM generate_series(0, %(pages)s - 1) n,
           LATERAL (SELECT CASE WHEN n < %(pages)s * 3 / 5 THEN 1
                                WHEN n < %(pages)s * 4 / 5 THEN 2
                                ELSE 3 END AS born) b,
           LATERAL (SELECT '/' || (array['guide', 'api', 'reference', 'blog'])[1 + n / 7 %% 4]
                           || '/' || n AS path) p;
    INSERT INTO documents (id, source_id, url_hash, content_hash, extractor_version, url, path,
                           title)
    OVERRIDING SYSTEM VALUE
    SELECT n, 'source' || source, substring(sha256(url::bytea) FOR 16), sha256(n::text::bytea),
           '1', url, path, 'Page ' || n
      FROM page;
    SELECT setval(pg_get_serial_sequence('documents', 'id'), %(pages)s);
    INSERT INTO generation_documents (generation_id, url_hash, document_id, fetched_at)
    SELECT g.id, substring(sha256(url::bytea) FOR 16), n, now()
      FROM page
      JOIN generations g ON g.source_id = 'source' || source AND g.number BETWEEN born AND last
"""
_PICKS: LiteralString = """
    CREATE TABLE pick AS
    SELECT n / %(per_page)s AS document_id, n %% %(per_page)s AS position,
           1 + floor(random() * %(pool)s)::int AS head, 1 + floor(random() * %(pool)s)::int AS body
      FROM generate_series(0, %(rows)s - 1) n
"""
_SECTIONS: LiteralString = """
    INSERT INTO sections (id, document_id, heading, level, anchor, content, position)
    SELECT gen_random_uuid(), k.document_id, h.heading, 2, 's' || k.position, b.content, k.position
      FROM pick k JOIN pool h ON h.n = k.head JOIN pool b ON b.n = k.body
     ORDER BY k.document_id, k.position
"""
_SEARCH: LiteralString = """
    INSERT INTO section_search (document_id, position, head_tsv, tsv)
    SELECT k.document_id, k.position, h.head || mark, setweight(h.head, 'A') || b.body || mark
      FROM pick k
      JOIN pool h ON h.n = k.head
      JOIN pool b ON b.n = k.body
      JOIN page p ON p.n = k.document_id
      JOIN sources s ON s.id = 'source' || p.source,
           LATERAL (SELECT array_to_tsvector(array['§' || s.number]) AS mark) m
     ORDER BY k.document_id, k.position
"""


def load(connection: Connection, text: RealText, rows: int) -> Iterator[str]:
    """Fill the tables, and yield the name of each step. Indexes are created at the end."""
    connection.execute("SET synchronous_commit = off; SET maintenance_work_mem = '512MB'")
    connection.execute("SET work_mem = '256MB'; SET statement_timeout = 0; SELECT setseed(0.5)")
    yield "reading the text"
    names = ["\n".join(identifier_lexemes(content)) for content in text.texts]
    _run(connection, _POOL, text.headings, text.texts, names)
    pages = rows // SECTIONS_PER_PAGE
    numbers = {"sources": SOURCES, "pages": pages, "rows": rows, "pool": len(text.texts),
               "per_page": SECTIONS_PER_PAGE}  # fmt: skip
    indexes = _drop_indexes(connection)
    yield "pages"
    for statements in (_SOURCES, _DOCUMENTS, _PICKS):
        _run_named(connection, statements, numbers)
    yield "sections"
    connection.execute(_SECTIONS)
    yield "search rows"
    connection.execute(_SEARCH)
    for definition in indexes:
        yield definition.split(" ON ")[0].lower()
        connection.execute(definition.encode())
    connection.execute("DROP TABLE pool, page, pick")
    yield "vacuum and analyze"
    connection.execute("VACUUM ANALYZE")


def _run(connection: Connection, statements: LiteralString, *values: list[str]) -> None:
    first, _, rest = statements.partition(";")
    connection.execute(first, values)
    connection.execute(rest.encode())


def _run_named(connection: Connection, statements: LiteralString, values: dict[str, int]) -> None:
    for statement in statements.split(";"):
        connection.execute(statement, values)


def _drop_indexes(connection: Connection) -> list[str]:
    """Drop the two search indexes; return the statements that create them."""
    found = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes"
        " WHERE tablename = 'section_search' AND indexdef LIKE '%gin%'"
    ).fetchall()
    for name, _ in found:
        connection.execute(f'DROP INDEX "{name}"'.encode())
    return [str(definition) for _, definition in found]
