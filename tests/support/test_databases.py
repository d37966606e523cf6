"""A database that is used again has nothing of the last test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, LiteralString
from urllib.parse import urlsplit

import psycopg
import pytest

from support.databases import Databases, administration, drop_database

ADD = "INSERT INTO domains (domain_name, base_url) VALUES ('a.example', 'http://a.example/')"


@pytest.fixture
def own(postgres: str, template: str) -> Iterator[Databases]:
    made = Databases(postgres, template)
    yield made
    made.close()


def run(url: str, *statements: LiteralString) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def identity(url: str) -> Any:
    return run(url, "SELECT oid FROM pg_database WHERE datname = current_database()")


def test_rows_and_sequences_are_those_of_the_template(own: Databases) -> None:
    with own.database() as url:
        first = identity(url)
        kept = run(url, "TABLE task_control")
        assert run(url, ADD, "DELETE FROM task_control", "SELECT id FROM domains") == [(1,)]
    with own.database() as url:
        assert identity(url) == first
        assert run(url, "SELECT FROM domains") == []
        assert run(url, "TABLE task_control") == kept
        assert run(url, ADD, "SELECT id FROM domains") == [(1,)]


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE left_behind (id int)",
        "ALTER TABLE domains ADD COLUMN left_behind int",
        "ALTER TABLE domains DISABLE TRIGGER ALL",
        "CREATE FUNCTION left_behind() RETURNS int LANGUAGE sql RETURN 1",
        "INSERT INTO domains (domain_name, base_url) SELECT n, n FROM generate_series(1, 40000) n",
        "ANALYZE crawl_tasks, domains",
        "CREATE SCHEMA clock",
    ],
)
def test_a_changed_schema_is_never_used_again(own: Databases, change: LiteralString) -> None:
    with own.database() as url:
        first = identity(url)
        run(url, ADD, change)
    with own.database() as url:
        assert identity(url) != first


def test_a_session_that_stays_costs_the_database(own: Databases) -> None:
    with own.database() as url:
        left = psycopg.connect(url)
    with own.database() as other:
        assert identity(other) != []
        with pytest.raises(psycopg.OperationalError):
            left.execute("SELECT 1")
    left.close()


def test_a_process_that_outlives_its_test_cannot_come_back(own: Databases) -> None:
    with own.database() as url:
        pass
    with own.database(), pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_a_database_that_the_test_dropped_is_replaced(own: Databases, postgres: str) -> None:
    with own.database() as url, administration(postgres) as server:
        drop_database(server, urlsplit(url).path[1:])
    with own.database() as url:
        assert identity(url) != []
