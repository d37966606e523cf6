"""Models and migrations agree, in both directions, and however many processes start at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from forager.db import schema
from forager.db.database import open_database
from forager.db.schema import SCHEMA_VERSION
from forager.db.tables import Base
from forager.errors import NotFound, SchemaMismatch
from forager.settings import Settings
from support.databases import administration, create_database, drop_database, with_database

DRIVER = "postgresql+psycopg://"


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


def test_models_and_migrations_agree(database_url: str) -> None:
    engine = create_engine(DRIVER + database_url.split("://", 1)[1])
    with engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'"
CHECKS = """
    SELECT conname, pg_get_constraintdef(oid)
      FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace
"""
STORAGE = "SELECT relname, reloptions FROM pg_class WHERE reloptions IS NOT NULL"


@pytest.mark.parametrize("query", [INDEXES, CHECKS, STORAGE], ids=["indexes", "checks", "storage"])
def test_what_alembic_does_not_compare_agrees_too(
    database_url: str, empty_url: str, query: str
) -> None:
    """Conditions of indexes and checks: made from the models, they read the same."""
    engine = create_engine(DRIVER + empty_url.split("://", 1)[1])
    Base.metadata.create_all(engine)
    engine.dispose()
    migrated = {k: v for k, v in rows(database_url, query) if not str(k).startswith("alembic")}
    assert dict(rows(empty_url, query)) == migrated


def test_the_version_is_the_newest_migration(database_url: str) -> None:
    scripts = ScriptDirectory.from_config(schema._alembic_config())
    assert scripts.get_current_head() == SCHEMA_VERSION == schema.current_version(database_url)


def test_every_migration_can_be_undone_and_applied_again(empty_url: str) -> None:
    assert schema.current_version(empty_url) is None
    schema.upgrade(empty_url)
    made = sorted(everything(empty_url))
    schema.downgrade(empty_url, "base")
    left = {name for (name,) in everything(empty_url)}
    assert {name for name in left if not re.search("alembic_version", name)} == set()
    schema.upgrade(empty_url)
    assert sorted(everything(empty_url)) == made


def test_the_hosts_of_jobs_that_wait_are_known_after_an_upgrade(database_url: str) -> None:
    schema.downgrade(database_url, "0006")
    with psycopg.connect(database_url) as connection:
        for status in ("pending", "completed"):
            connection.execute(
                """
                INSERT INTO crawl_jobs (id, kind, payload, status)
                VALUES (gen_random_uuid(), 'crawl', '{"urls": ["https://a.example:81/x"]}', %s)
                """,
                (status,),
            )
        connection.execute(
            "INSERT INTO crawl_jobs (id, kind, payload) SELECT gen_random_uuid(), 'selftest', '{}'"
        )
    schema.upgrade(database_url)
    found = rows(database_url, "SELECT kind, status, host FROM crawl_jobs ORDER BY kind, status")
    assert found == [
        ("crawl", "pending", "a.example:81"),
        ("crawl", "completed", None),
        ("selftest", "pending", None),
    ]


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
