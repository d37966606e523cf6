"""Alembic's entry point.

`forager.db.schema` passes in a connection. The `alembic` command at the project root has none, and
gets the configured database; its new migrations are numbered and consist of two SQL files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from alembic import context
from alembic.operations import MigrationScript
from alembic.script import ScriptDirectory, write_hooks
from alembic.util import CommandError
from sqlalchemy import Connection

from forager.db.database import reach_server
from forager.db.schema import SCHEMA_VERSION, migrating
from forager.errors import ForagerError
from forager.logs import configure_logs
from forager.settings import load_settings


@write_hooks.register("sql_files")
def _create_sql_files(script: str, _options: Any) -> None:
    for ending in (".sql", ".down.sql"):
        Path(script).with_suffix(ending).touch()


def _number(_context: Any, _revision: Any, scripts: Iterable[MigrationScript]) -> None:
    for script in scripts:
        script.rev_id = f"{int(SCHEMA_VERSION) + 1:04}"


def _refuse() -> None:
    if context.is_offline_mode():
        versions = Path(ScriptDirectory.from_config(context.config).versions)
        raise CommandError(f"--sql is not needed: the migrations are SQL files in {versions}")
    if getattr(context.config.cmd_opts, "autogenerate", False):
        raise CommandError(
            "--autogenerate is not possible: Forager has no ORM models to compare with."
            " Run the command without it, and write the two SQL files that it creates."
        )


def _run(connection: Connection) -> None:
    context.configure(connection=connection, process_revision_directives=_number)
    context.run_migrations()


def _run_on_configured_database() -> None:
    _refuse()
    try:
        settings = load_settings()
        configure_logs(settings.log_level, settings.log_format)
        with reach_server(settings) as server, migrating(server.url) as connection:
            _run(connection)
    except ForagerError as error:
        raise CommandError(error.message) from None


if (given := context.config.attributes.get("connection")) is not None:
    _run(given)
else:
    _run_on_configured_database()
