"""Migrations make the committed schema, in both directions, also when many processes start."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.script import ScriptDirectory
from schema_dump import DUMP, schema_dump

from forager.db import schema
from forager.db.database import open_database
from forager.db.schema import SCHEMA_VERSION
from forager.errors import NotFound, SchemaMismatch
from forager.settings import Settings
from support.databases import administration, create_database, drop_database, with_database


@pytest.fixture
def empty_url(postgres: str) -> Iterator[str]:
    """A database that Forager has not used yet."""
    with administration(postgres) as server:
        name = create_database(server)
        yield with_database(postgres, name)
        drop_database(server, name)


def rows(url: str, query: Any) -> list[Any]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def everything(url: str) -> list[Any]:
    """Tables, functions and types of Forager's own."""
    return rows(
        url,
        """
        SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
        UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
        UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace
        """,
    )


def test_the_migrated_database_equals_the_committed_dump(database_url: str) -> None:
    """`make schema-dump` writes the dump; its difference is part of the review of a change."""
    assert schema_dump(database_url) == DUMP.read_text("utf-8")


def test_the_version_is_the_newest_migration(database_url: str) -> None:
    scripts = ScriptDirectory.from_config(schema._alembic_config())
    assert scripts.get_current_head() == SCHEMA_VERSION == schema.current_version(database_url)


def test_every_migration_can_be_undone_and_applied_again(empty_url: str) -> None:
    assert schema.current_version(empty_url) is None
    schema.upgrade(empty_url)
    # other databases of the tests got their schema without Alembic
    assert schema_dump(empty_url) == DUMP.read_text("utf-8")
    made = sorted(everything(empty_url))
    schema.downgrade(empty_url, "base")
    left = {name for (name,) in everything(empty_url)}
    assert {name for name in left if not re.search("alembic_version", name)} == set()
    schema.upgrade(empty_url)
    assert sorted(everything(empty_url)) == made


# a migration that has reached main is in use: write a new one instead of changing these
RELEASED = {
    "0001_initial.sql": "4f69d810bf151c590722060aecbf602fb6e84a577e369f0f21be0902f39e9b23",
    "0002_one_outbox.sql": "fd575a646184b2542d5e9820a28db5aeb0b0e23fcda9d778469135e6339bf6fa",
    "0003_crawl_templates_and_webhook_responses.sql": (
        "62470d8a6a96f5f80a25c85f16032810b2bc3fb8583afee8cf77b7b79a9e5b27"
    ),
    "0004_queued_tasks_by_host.sql": (
        "cb54e4ddab1e5de73f7a2f57b5b9fdae75498443235a02edfed61e0af7d67ba4"
    ),
    "0005_region_of_new_jobs.sql": (
        "dc707a664fa360ebc4ff9a63c1f3aab62d8768412deffeffbaca99ec5cb37c23"
    ),
    "0006_uncompressed_search_rows.sql": (
        "10583ced8cccb887bde5d513e7111d818aad9778f5f2165d878421ae83462e8c"
    ),
    "0007_shared_runners_and_access.sql": (
        "511083df7e73b74e58e288cc3d39eea2aec5a7f20730f500823b2a73985afb68"
    ),
    "0008_column_meanings.sql": (
        "73d9ab6f323dae07a9d60d438767f862b0e87acec48ced942e66a389b7f25927"
    ),
    "0009_anchors_in_sections.sql": (
        "35dca564e045716e5f08c27fd69f898922a52f2afcf67ffdc2c04b2ca3defe80"
    ),
    "0010_product_replacements.sql": (
        "62547f74bcc6f415cfc6d0b894a42b2d24650f830fa97e4669900bdbc22250c1"
    ),
}


def test_released_migrations_are_unchanged() -> None:
    for name, checksum in RELEASED.items():
        script = (schema.MIGRATIONS / "versions" / name).read_bytes()
        assert hashlib.sha256(script).hexdigest() == checksum, f"{name} is released; add a new one"


FILL_0001 = """
    INSERT INTO outbox (topic, ref_id, target_id, attempts) VALUES ('webhook', 7, 3, 2);
    INSERT INTO index_outbox (kind, ref_id)
         SELECT 'sections', n FROM generate_series(1, 4000) AS n;
    DELETE FROM index_outbox WHERE ref_id < 4000;
    INSERT INTO index_outbox (kind, ref_id, sections) VALUES ('sections', 11, 5);
    INSERT INTO dispatch_outbox (stage, band, domain_id, task_ids)
         VALUES ('crawl', 2, 9, '{21,22}')
"""


def test_the_messages_of_three_outboxes_are_kept(empty_url: str) -> None:
    schema.upgrade(empty_url, "0001")
    with psycopg.connect(empty_url) as connection:
        connection.execute(FILL_0001)
    schema.ensure_current(empty_url)
    kept = rows(empty_url, "SELECT topic, lane, ref_id, payload, attempts FROM outbox ORDER BY id")
    assert kept == [
        ("webhooks", 3, 7, None, 2),
        ("sections", 0, 4000, None, 0),
        ("sections", 0, 11, [5], 0),
        ("crawl", 2, 9, [21, 22], 0),
    ]
    # ids are versions for the search engine, which refuses one that is not higher than its own
    assert rows(empty_url, "SELECT min(id) > 4001 FROM outbox WHERE topic = 'sections'") == [
        (True,)
    ]
    schema.downgrade(empty_url, "0001")
    assert rows(empty_url, "SELECT ref_id, sections FROM index_outbox ORDER BY id") == [
        (4000, None),
        (11, 5),
    ]
    assert rows(empty_url, "SELECT task_ids FROM dispatch_outbox") == [([21, 22],)]
    assert rows(empty_url, "SELECT topic, target_id, attempts FROM outbox") == [("webhook", 3, 2)]


FILL_0010 = """
    INSERT INTO domains (domain_name, base_url) VALUES ('a.example', 'https://a.example');
    INSERT INTO products (domain_id, url, url_hash, product_name, content_hash, parser,
                          parser_version)
         SELECT d.id, 'https://a.example/1', '1', 'Lamp', '1', 'generic', '1' FROM domains d;
    INSERT INTO alert_rules (kind, percent) VALUES ('price_drop', 5);
    INSERT INTO webhooks (url, secret, kinds)
         VALUES ('https://a.example/all', '', '{}'),
                ('mailto:a@a.example', '', '{price.changed}');
    INSERT INTO catalog_events (kind, payload) VALUES ('price.changed', '{}');
    INSERT INTO outbox (topic, lane, ref_id)
         SELECT 'webhooks', w.id, e.id FROM webhooks w, catalog_events e
"""
FILL_0011 = """
    UPDATE domains SET traffic_delay = 10;
    INSERT INTO host_minutes SELECT id, now(), 1, 0, 0, 0, 0, 0.5, 1 FROM domains;
    INSERT INTO price_templates (domain_id, path) SELECT id, 'p' FROM domains;
    INSERT INTO withheld_prices (product_id, price, reason) SELECT id, 5, 'far' FROM products;
    INSERT INTO item_assignments (product_id, item) SELECT id, 'x' FROM products;
    INSERT INTO own_prices (item, price, currency) VALUES ('x', 4, 'EUR');
    INSERT INTO alert_rules (kind) VALUES ('best_offer');
    UPDATE alert_rules SET last_triggered_at = now();
    INSERT INTO webhooks (url, secret, kinds, source_id)
         VALUES ('slack://…', '', '{}', NULL),
                ('https://a.example/crawls', '', '{crawl.failed}', NULL),
                ('https://a.example/both', '', '{price.changed,source.changed}', NULL),
                ('https://a.example/one', '', '{}', 'docs');
    INSERT INTO catalog_events (kind, source_id, payload) VALUES ('source.changed', 'docs', '{}');
    INSERT INTO outbox (topic, lane, ref_id)
         SELECT 'webhooks', w.id, e.id FROM webhooks w, catalog_events e
          WHERE e.kind = 'source.changed';
    INSERT INTO outbox (topic, lane, ref_id) VALUES ('source changes', 0, 1), ('failed jobs', 0, 1)
"""


def test_the_data_of_0010_survives_0011_and_the_way_back(empty_url: str) -> None:
    schema.upgrade(empty_url, "0010")
    with psycopg.connect(empty_url) as connection:
        connection.execute(FILL_0010)
    kept = {
        "SELECT domain_name FROM domains": [("a.example",)],
        "SELECT product_name FROM products": [("Lamp",)],
        "SELECT kind, percent FROM alert_rules": [("price_drop", 5)],
        "SELECT kind FROM catalog_events": [("price.changed",)],
        "SELECT topic, lane, ref_id FROM outbox ORDER BY id": [
            ("webhooks", 1, 1), ("webhooks", 2, 1),
        ],
    }  # fmt: skip
    webhooks = "SELECT url, kinds, is_active FROM webhooks ORDER BY id"
    active = [("https://a.example/all", [], True), ("mailto:a@a.example", ["price.changed"], True)]
    schema.upgrade(empty_url, "0011")
    assert {query: rows(empty_url, query) for query in kept} == kept
    assert rows(empty_url, webhooks) == active
    with psycopg.connect(empty_url) as connection:
        connection.execute(FILL_0011)
    assert rows(empty_url, "SELECT item, offers FROM items") == [("x", 1)]
    schema.downgrade(empty_url, "0010")
    assert {query: rows(empty_url, query) for query in kept} == kept
    # those that need what the previous version does not know send nothing
    found = rows(empty_url, webhooks)
    assert found[:2] == active
    assert {is_active for _, _, is_active in found[2:]} == {False}
    schema.upgrade(empty_url, "0011")
    assert {query: rows(empty_url, query) for query in kept} == kept


def test_many_may_start_at_once(empty_url: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(schema.ensure_current, [empty_url] * 8))
    assert schema.current_version(empty_url) == SCHEMA_VERSION


def test_a_version_that_does_not_exist_is_the_fault_of_who_named_it(database_url: str) -> None:
    for move in (schema.upgrade, schema.downgrade):
        with pytest.raises(NotFound, match="there is no schema 0815"):
            move(database_url, "0815")


async def test_a_newer_database_is_refused_with_a_hint(
    database_url: str, settings: Settings
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaMismatch, match="update this one"):
        async with open_database(settings):
            raise AssertionError("must not open")
    assert schema.current_version(database_url) == "9999"


# --- numbers that are no numbers --------------------------------------------------------------

TABLE_CHECKS = """
    SELECT conrelid::regclass::text, pg_get_constraintdef(oid)
      FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace
"""
NUMBERS = """
    SELECT c.table_name, c.column_name
      FROM information_schema.columns c
      JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'
       AND (c.data_type IN ('real', 'double precision', 'numeric')
            OR c.udt_name IN ('_float4', '_float8', '_numeric'))
"""


def test_every_number_is_finite(database_url: str) -> None:
    """A new column of this kind needs its CHECK: arrays too, for which there is none yet."""
    checks = rows(database_url, TABLE_CHECKS)
    numbers = rows(database_url, NUMBERS)
    assert ("domains", "slow_delay") in numbers
    for table, column in numbers:
        assert any(
            of == table
            and f"({column} > '-Infinity'::" in check
            and f"({column} < 'Infinity'::" in check
            for of, check in checks
        ), f"{table}.{column} accepts NaN or infinity"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("column", ["slow_delay", "crawl_delay_seconds"])
def test_no_row_has_a_number_that_is_none(database_url: str, column: str, value: str) -> None:
    statement = f"INSERT INTO domains (domain_name, base_url, {column}) VALUES ('a', 'b', %s)"
    with (
        psycopg.connect(database_url) as connection,
        # a numeric with a precision refuses infinity by itself
        pytest.raises((psycopg.errors.CheckViolation, psycopg.errors.NumericValueOutOfRange)),
    ):
        connection.execute(statement, (value,))


def test_times_that_no_client_can_read_are_cleaned_and_refused(empty_url: str) -> None:
    schema.upgrade(empty_url)
    schema.downgrade(empty_url, "0006")
    with psycopg.connect(empty_url) as connection:
        connection.execute(
            """
            WITH d AS (INSERT INTO domains (domain_name, base_url)
                       VALUES ('a.example', 'https://a.example') RETURNING id)
            INSERT INTO crawl_tasks (domain_id, url, url_hash, scheduled_at, next_crawl_at)
            SELECT id, 'https://a.example/', '', 'infinity', '-infinity' FROM d
            """
        )
    schema.upgrade(empty_url)
    [(scheduled, following)] = rows(
        empty_url,
        "SELECT extract(year FROM scheduled_at), extract(year FROM next_crawl_at) FROM crawl_tasks",
    )
    assert (scheduled, following) == (9999, 100)
    with psycopg.connect(empty_url) as connection:
        for time in ("infinity", "-infinity", "20000-01-01"):
            for column in ("scheduled_at", "next_crawl_at"):
                with pytest.raises(psycopg.errors.CheckViolation), connection.transaction():
                    connection.execute(f"UPDATE crawl_tasks SET {column} = '{time}'")


ROOT = Path(__file__).parents[2]


def alembic(url: str, *arguments: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("alembic"), *arguments],
        cwd=root,
        env={**os.environ, "FORAGER_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_alembic_moves_the_configured_database_from_the_project_root(empty_url: str) -> None:
    previous = f"{int(SCHEMA_VERSION) - 1:04}"
    assert alembic(empty_url, "upgrade", "head").returncode == 0
    assert alembic(empty_url, "current").stdout == f"{SCHEMA_VERSION} (head)\n"
    assert alembic(empty_url, "downgrade", "-1").returncode == 0
    assert alembic(empty_url, "current").stdout == f"{previous}\n"
    assert f"{previous} -> {SCHEMA_VERSION} (head)" in alembic(empty_url, "history").stdout


def test_alembic_creates_numbered_migrations_of_two_sql_files(
    database_url: str, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    folder = "src/forager/db/migrations"
    shutil.copytree(ROOT / folder, tmp_path / folder)
    made = alembic(database_url, "revision", "-m", "Add a column", root=tmp_path)
    assert made.returncode == 0, made.stderr
    name = f"{int(SCHEMA_VERSION) + 1:04}_add_a_column"
    found = {path.name for path in (tmp_path / folder / "versions").glob(f"{name}*")}
    assert found == {f"{name}.py", f"{name}.sql", f"{name}.down.sql"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("revision", "--autogenerate", "-m", "x"), "no ORM models"),
        (("upgrade", "head", "--sql"), "the migrations are SQL files"),
    ],
)
def test_alembic_says_what_is_not_possible(
    database_url: str, arguments: tuple[str, ...], said: str
) -> None:
    refused = alembic(database_url, *arguments)
    assert refused.returncode != 0
    assert said in refused.stdout + refused.stderr
