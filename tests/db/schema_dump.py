"""The schema of a database as text, from the catalog: columns, comments, constraints, code.

`make schema-dump` writes the schema of the current migrations to `schema.txt`. The
catalog is read instead of running pg_dump because its output differs between versions.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

DUMP = Path(__file__).with_name("schema.txt")

# one row per line of the dump: object, order within it, text
CATALOG = """
WITH tables AS (
    SELECT oid, relname, relkind, reloptions
      FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')
       AND relname <> 'alembic_version'
)
SELECT 'type ' || t.typname, 0, string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder)
  FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid
 WHERE t.typnamespace = 'public'::regnamespace
 GROUP BY t.oid
UNION ALL
SELECT 'function ' || proname, 0, pg_get_functiondef(oid)
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL
SELECT 'view ' || relname, 10000, pg_get_viewdef(oid) FROM tables WHERE relkind = 'v'
UNION ALL
SELECT CASE relkind WHEN 'v' THEN 'view ' ELSE 'table ' END || relname, -1,
       '-- ' || obj_description(oid, 'pg_class')
  FROM tables WHERE obj_description(oid, 'pg_class') IS NOT NULL
UNION ALL
SELECT 'table ' || relname, 0, 'with ' || array_to_string(reloptions, ', ')
  FROM tables WHERE reloptions IS NOT NULL
UNION ALL
SELECT CASE t.relkind WHEN 'v' THEN 'view ' ELSE 'table ' END || t.relname, a.attnum,
       concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
                 CASE WHEN a.attcollation NOT IN (0, 100) THEN 'collate ' || c.collname END,
                 CASE WHEN a.attnotnull THEN 'not null' END,
                 CASE a.attidentity WHEN 'a' THEN 'generated always as identity' END,
                 'default ' || pg_get_expr(d.adbin, d.adrelid),
                 '-- ' || col_description(t.oid, a.attnum))
  FROM tables t
  JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_collation c ON c.oid = a.attcollation
  LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
UNION ALL
SELECT 'table ' || t.relname, 10000,
       'constraint ' || c.conname || ' ' || pg_get_constraintdef(c.oid)
  FROM tables t JOIN pg_constraint c ON c.conrelid = t.oid AND c.contype <> 'n'
UNION ALL
SELECT 'table ' || t.relname, 20000, replace(pg_get_indexdef(i.indexrelid), 'public.', '')
  FROM tables t JOIN pg_index i ON i.indrelid = t.oid AND NOT i.indisprimary
"""


def schema_dump(url: str) -> str:
    with psycopg.connect(url) as connection:
        # names sort alike on every server
        found = connection.execute(
            f"""
            SELECT * FROM ({CATALOG}) AS line (name, place, text)
             ORDER BY name COLLATE "C", place, text COLLATE "C"
            """
        )
        lines: list[str] = []
        last = None
        for name, _, text in found:
            if name != last:
                lines += ["", name]
                last = name
            lines += [f"    {line}".rstrip() for line in text.splitlines()]
    return "\n".join(lines[1:]) + "\n"


def main() -> None:
    from forager.db import schema
    from forager.db.database import reach_server
    from forager.settings import Settings

    with TemporaryDirectory() as home:
        settings = Settings(home=Path(home), database_linger_seconds=0)
        with reach_server(settings) as server:
            schema.ensure_current(server.url)
            DUMP.write_text(schema_dump(server.url), "utf-8")
    sys.stdout.write(f"wrote {DUMP}\n")


if __name__ == "__main__":
    main()
