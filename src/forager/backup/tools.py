"""PostgreSQL's own programs for dumps, told where the database is by their environment."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from forager.db.embedded.binaries import find_binaries
from forager.errors import ForagerError, InvalidInput
from forager.settings import Settings

# as many hours as a dump of a very large database may take
LIMIT = 12 * 3600.0
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


class DumpFailed(ForagerError):
    """A dump was not made, or not read back."""


def run_tool(settings: Settings, url: str, name: str, *arguments: str) -> None:
    """Run `pg_dump` or `pg_restore`. No password is among its arguments, which others can see."""
    command = [str(_find(settings, name)), "--no-password", *arguments]
    try:
        subprocess.run(
            command, env=_environment(url), check=True, capture_output=True, timeout=LIMIT
        )
    except subprocess.CalledProcessError as error:
        words = error.stderr.decode("utf-8", "replace").strip()[-2000:]
        raise DumpFailed(f"{name} failed: {words}") from None
    except subprocess.TimeoutExpired:
        raise DumpFailed(f"{name} took more than {LIMIT / 3600:g} hours") from None


def _find(settings: Settings, name: str) -> Path:
    """Those of the embedded server; for a server of one's own, those that came with it."""
    if settings.database_url is None:
        return find_binaries().postgres.with_name(name)
    found = shutil.which(name)
    if found is None:
        raise InvalidInput(
            f"{name} is not installed",
            hint="Install the client programs of your PostgreSQL, of its version or newer.",
        )
    return Path(found)


def _environment(url: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    told = conninfo_to_dict(url)
    return clean | {VARIABLES[key]: str(value) for key, value in told.items() if key in VARIABLES}
