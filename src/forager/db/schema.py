"""Versions of the schema: the one that Forager needs, the one of the database, and migrations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from forager.db.rows import Values
from forager.errors import DatabaseUnavailable, NotFound, SchemaMismatch, error_text
from forager.hints import Hint, action
from forager.logs import get_logger

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection as SqlAlchemyConnection

    from forager.db.database import Database

log = get_logger("db")

MIGRATIONS = files("forager.db") / "migrations"

# from the file names, because importing Alembic would slow down every start
UPGRADES = sorted(
    script.name
    for script in (MIGRATIONS / "versions").iterdir()
    if script.name.endswith(".sql") and not script.name.endswith(".down.sql")
)
SCHEMA_VERSION = UPGRADES[-1][:4]

OLDEST_SERVER = 150000

# one number for all of Forager: the holder of this advisory lock may change the schema
SCHEMA_LOCK = 0x464F5241


def current_version(url: str) -> str | None:
    """The database's schema version; None for a database that Forager has not used yet."""
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        return _read_version(connection)


def ensure_current(url: str) -> None:
    """Bring the database to this Forager's schema; refuse one that is newer than that."""
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        _refuse_old_server(connection.info.server_version)
        version = _read_version(connection)
        if version is None:
            version = _create_schema(connection)
    if version != SCHEMA_VERSION:
        upgrade(url)


def _refuse_old_server(version: int) -> None:
    if version < OLDEST_SERVER:
        raise DatabaseUnavailable(
            f"PostgreSQL {version // 10000} is too old",
            hint="It must be 15 or newer; without FORAGER_DATABASE_URL Forager runs its own.",
        )


def _create_schema(connection: psycopg.Connection[Any]) -> str | None:
    """Apply all migrations to a new database without Alembic, whose import takes a second."""
    with connection.transaction():
        # taken first: two processes that start together must not both find an empty database
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
        known = connection.execute("SELECT to_regclass('alembic_version')").fetchone()
        if known is not None and known[0] is not None:
            return _read_version(connection)
        for name in UPGRADES:
            connection.execute((MIGRATIONS / "versions" / name).read_bytes())
        connection.execute("CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)")
        connection.execute(
            "ALTER INDEX alembic_version_pkey RENAME TO alembic_version_pkc"  # Alembic's name
        )
        connection.execute("INSERT INTO alembic_version VALUES (%s)", (SCHEMA_VERSION,))
    log.info("schema created", revision=SCHEMA_VERSION)
    return SCHEMA_VERSION


def run_migration(script: str, ending: str) -> None:
    """Run the SQL file beside a migration's script, in the transaction of that migration."""
    from alembic import op

    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    # by the driver itself: SQLAlchemy would look for parameters in the text
    driver.execute(Path(script).with_suffix(ending).read_bytes())


def upgrade(url: str, revision: str = "head") -> None:
    """Apply migrations up to `revision`, one process at a time."""
    _migrate(url, revision, forward=True)


def downgrade(url: str, revision: str) -> None:
    """Undo migrations down to `revision` ("base" undoes all)."""
    _migrate(url, revision, forward=False)


def _read_version(connection: psycopg.Connection[Any]) -> str | None:
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except psycopg.errors.UndefinedTable:
        return None
    return row[0] if row else None


def _migrate(url: str, revision: str, *, forward: bool) -> None:
    from alembic import command
    from alembic.util import CommandError

    try:
        with migrating(url) as connection:
            config = _alembic_config()
            config.attributes["connection"] = connection
            (command.upgrade if forward else command.downgrade)(config, revision)
    except CommandError as error:
        if f"'{revision}'" in str(error):
            raise NotFound(
                f"there is no schema {revision}",
                hint=Hint(
                    "{} shows the versions of the database and of Forager.", action("db current")
                ),
            ) from None
        raise SchemaMismatch(
            f"the database cannot be moved to schema {revision}: {error_text(error)}",
            hint="A newer Forager made it: update this one.",
        ) from None
    log.info("schema moved", revision=revision, direction="up" if forward else "down")


@contextmanager
def migrating(url: str) -> Iterator[SqlAlchemyConnection]:
    """A transaction that may change the schema: one at a time in all processes."""
    from sqlalchemy import create_engine, text

    engine = create_engine("postgresql+psycopg://" + url.split("://", 1)[1])
    try:
        with engine.begin() as connection:
            # taken first: two processes that start together must not both find an old schema
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": SCHEMA_LOCK})
            yield connection
    finally:
        engine.dispose()


def _alembic_config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


ANSWER_LIMIT = 3.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the database answers, and has the schema of this version."""

    database: bool
    schema: str | None
    expected_schema: str = SCHEMA_VERSION

    @property
    def ready(self) -> bool:
        return self.database and self.schema == self.expected_schema


async def readiness(database: Database) -> Readiness:
    """Whether the database answers within seconds, and has the expected schema."""
    try:
        async with database.with_answer_limit(ANSWER_LIMIT).connection() as connection:
            value = await Values(connection).first("SELECT version_num FROM alembic_version")
            return Readiness(True, value)
    except psycopg.errors.UndefinedTable:
        return Readiness(True, None)
    except DatabaseUnavailable:
        return Readiness(False, None)
