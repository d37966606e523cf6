"""A database per test, without creating one per test: each is used again once it is empty.

Copying the template and dropping the copy takes the server 50 to 130 ms of processor time, and
emptying the tables that a test wrote to about 10. Nothing of a test reaches the next one: the
database has a new name, so that a process that outlived its test cannot connect to it again, and
one that still has a session, whose catalog changed or that has grown is dropped instead.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg

Connection = psycopg.Connection[tuple[object, ...]]

# a session that was closed ends a moment later
SESSION_LIMIT = 0.5
# a test that wrote more than this leaves tables that are slow to empty and slow to read
GROWTH_LIMIT = 4 * 1024 * 1024

# How many objects of each kind the schema has, and the last transaction that changed one; those of
# PostgreSQL itself, which are most, are not read. Statistics count too: they change plans. Vacuum
# changes only the numbers in pg_class, and those in place.
CATALOGS = {
    "pg_attrdef": "adrelid",
    "pg_attribute": "attrelid",
    "pg_class": "oid",
    "pg_constraint": "oid",
    "pg_index": "indrelid",
    "pg_namespace": "oid",
    "pg_proc": "oid",
    "pg_statistic": "starelid",
    "pg_trigger": "oid",
    "pg_type": "oid",
}
STATE = f"""
SELECT ARRAY[{
    ", ".join(
        f"(SELECT count(*) || '/' || max(xmin::text::bigint) FROM {catalog} WHERE {key} >= 16384)"
        for catalog, key in CATALOGS.items()
    )
}],
       (SELECT count(*) FROM pg_db_role_setting
         WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())),
       pg_database_size(current_database())
"""

# without triggers, so that the order of foreign keys and the rules of the tables do not matter
EMPTY = """
SET session_replication_role = replica;
DO $$
DECLARE name text;
BEGIN
    FOR name IN
        SELECT oid::regclass::text FROM pg_class
         WHERE relkind = 'r' AND oid >= 16384 AND relnamespace <> 'pg_toast'::regnamespace
           AND pg_relation_size(oid) > 0
    LOOP
        EXECUTE 'DELETE FROM ' || name;
    END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
       FROM pg_sequences WHERE last_value IS NOT NULL;
END $$
"""

TABLES = """
SELECT oid::regclass::text FROM pg_class
 WHERE relkind = 'r' AND oid >= 16384 AND pg_relation_size(oid) > 0
"""

SEQUENCES = """
SELECT format('%I.%I', schemaname, sequencename), last_value FROM pg_sequences
 WHERE last_value IS NOT NULL
"""


class Databases:
    """The databases of one test process, one after the other, all like the template."""

    def __init__(self, server: str, template: str) -> None:
        self.server = server
        self.template = template
        self._administrator: Connection | None = None
        self._spare: str | None = None
        self._rows: list[tuple[str, bytes]] = []
        self._sequences: list[tuple[object, ...]] = []
        self._catalog: object = None
        self._size = 0

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty database at the current schema."""
        server = self._connection()
        name = self._used_again(server) or self._created(server)
        yield with_database(self.server, name)
        self._spare = name

    def close(self) -> None:
        if self._spare is not None:
            drop_database(self._connection(), self._spare)
        if self._administrator is not None:
            self._administrator.close()

    def _connection(self) -> Connection:
        """One connection for all tests: each new one takes the server 5 ms."""
        if self._administrator is None or self._administrator.closed:
            self._administrator = psycopg.connect(self.server, autocommit=True)
        return self._administrator

    def _created(self, server: Connection) -> str:
        name = create_database(server, self.template)
        with administration(with_database(self.server, name)) as connection:
            tables = [str(table) for (table,) in connection.execute(TABLES)]
            self._rows = [(table, _copied_out(connection, table)) for table in tables]
            self._sequences = connection.execute(SEQUENCES).fetchall()
            self._catalog, self._size = _state(connection)
        return name

    def _used_again(self, server: Connection) -> str | None:
        if self._spare is None:
            return None
        name, old, self._spare = new_name(), self._spare, None
        if _open(server, old) and _unused(server, old):
            server.execute(f'ALTER DATABASE "{old}" RENAME TO "{name}"')
            if self._emptied(name):
                return name
            old = name
        drop_database(server, old)
        return None

    def _emptied(self, name: str) -> bool:
        """Restore the contents of the template; False if more than contents changed."""
        with administration(with_database(self.server, name)) as connection:
            catalog, size = _state(connection)
            if catalog != self._catalog or size > self._size + GROWTH_LIMIT:
                return False
            try:
                connection.execute(EMPTY)
            except psycopg.errors.InsufficientPrivilege:  # only a superuser switches triggers off
                return False
            for table, rows in self._rows:
                with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                    copy.write(rows)
            for sequence in self._sequences:
                connection.execute("SELECT setval(%s::regclass, %s)", sequence)
        return True


def new_name() -> str:
    return f"test_{uuid4().hex}"


def with_database(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def create_database(server: Connection, template: str = "template1") -> str:
    """The name of a new copy of `template`."""
    name = new_name()
    server.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return name


def drop_database(server: Connection, name: str) -> None:
    server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@contextmanager
def outage(server: str, url: str) -> Iterator[None]:
    """Refuse all connections to the database at `url`, and end those that there are."""
    name = urlsplit(url).path[1:]
    with administration(server) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        try:
            yield
        finally:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')


@contextmanager
def administration(url: str) -> Iterator[Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def _state(connection: Connection) -> tuple[object, int]:
    row = connection.execute(STATE).fetchone()
    assert row is not None
    *catalog, size = row
    return catalog, int(str(size))


def _copied_out(connection: Connection, table: str) -> bytes:
    with connection.cursor().copy(f"COPY {table} TO STDOUT") as copy:
        return b"".join(bytes(part) for part in copy)


def _open(server: Connection, name: str) -> bool:
    found = server.execute("SELECT FROM pg_database WHERE datname = %s AND datallowconn", (name,))
    return found.fetchone() is not None


def _unused(server: Connection, name: str) -> bool:
    """Whether every session ended. A session that stays belongs to a process that lives."""
    limit = time.monotonic() + SESSION_LIMIT
    while True:
        found = server.execute(
            "SELECT FROM pg_stat_activity"
            " WHERE datname = %s AND backend_type = 'client backend' LIMIT 1",
            (name,),
        )
        if found.fetchone() is None:
            return True
        if time.monotonic() > limit:
            return False
        time.sleep(0.005)
