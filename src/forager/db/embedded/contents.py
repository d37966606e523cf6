"""The one database inside the embedded server."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg import errors, sql

from forager.db.embedded.cluster import ROLE
from forager.db.embedded.sockets import database_url
from forager.errors import EmbeddedServerError

DATABASE = "forager"
_CONNECT_LIMIT = 30


def ensure_database(socket_folder: Path) -> str:
    """The URL of Forager's database, which is created if it is missing."""
    url = database_url(socket_folder, ROLE, DATABASE)
    try:
        try:
            psycopg.connect(url, connect_timeout=_CONNECT_LIMIT).close()
        except errors.OperationalError as error:
            if "does not exist" not in str(error):
                raise
            _create_database(socket_folder)
    except psycopg.Error as error:
        raise EmbeddedServerError(
            f"the embedded PostgreSQL runs, but cannot be used: {error}",
            hint="see `forager doctor` for its log",
        ) from error
    return url


def _create_database(socket_folder: Path) -> None:
    maintenance = database_url(socket_folder, ROLE, "postgres")
    with psycopg.connect(
        maintenance, autocommit=True, connect_timeout=_CONNECT_LIMIT
    ) as connection:
        try:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        except (errors.DuplicateDatabase, errors.UniqueViolation):
            return  # another process was quicker
