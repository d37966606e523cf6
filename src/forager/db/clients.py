"""PostgreSQL's client programs: `psql`, `pg_dump` and `pg_restore`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from forager.db.embedded.binaries import find_binaries
from forager.errors import EmbeddedServerError

VARIABLES = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
}


def bundled_client(name: str) -> Path | None:
    """A program of the embedded server; None if that is not installed."""
    try:
        path = find_binaries().postgres.with_name(name)
    except EmbeddedServerError:
        return None
    return path if os.access(path, os.X_OK) else None


def installed_client(name: str) -> Path | None:
    """A program of the system."""
    found = shutil.which(name)
    return None if found is None else Path(found)


def client_environment(url: str) -> dict[str, str]:
    """The environment that connects a program, so that no password is among its arguments."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    given = conninfo_to_dict(url)
    return clean | {VARIABLES[key]: str(value) for key, value in given.items() if key in VARIABLES}
