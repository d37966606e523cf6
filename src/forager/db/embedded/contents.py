"""The one database inside the embedded server."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg import errors, sql

from forager.db.embedded.cluster import ROLE
from forager.db.embedded.folder import ServerFolder
from forager.db.embedded.server import START_LIMIT
from forager.db.embedded.sockets import database_url
from forager.db.embedded.trouble import StillStartingError
from forager.db.embedded.waiting import moments
from forager.errors import EmbeddedServerError

DATABASE = "forager"
_CONNECT_LIMIT = 30
_DROPPED_LIMIT = 3.0


def ensure_database(folder: ServerFolder, socket_folder: Path) -> str:
    """The URL of Forager's database, which is created if it is missing."""
    url = database_url(socket_folder, ROLE, DATABASE)
    for waited in moments(START_LIMIT, "waiting for the embedded PostgreSQL to recover", folder):
        try:
            if not _exists(url):
                _create_database(socket_folder)
            return url
        except psycopg.Error as error:
            # after the crash of a backend the server drops everybody, then recovers for as long
            # as that takes, and its pid file says "ready" all the while
            if waited > _DROPPED_LIMIT and "the database system is" not in str(error):
                raise EmbeddedServerError(
                    f"the embedded PostgreSQL runs, but cannot be used: {error}",
                    hint=f"the server's log is {folder.log}",
                ) from error
    raise StillStartingError(hint=f"try again later, and see {folder.log}")


def _exists(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=_CONNECT_LIMIT).close()
    except errors.OperationalError as error:
        if "does not exist" not in str(error):
            raise
        return False
    return True


def _create_database(socket_folder: Path) -> None:
    maintenance = database_url(socket_folder, ROLE, "postgres")
    with psycopg.connect(
        maintenance, autocommit=True, connect_timeout=_CONNECT_LIMIT
    ) as connection:
        try:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        except (errors.DuplicateDatabase, errors.UniqueViolation):
            return  # another process was quicker
