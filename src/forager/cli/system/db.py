"""`forager db`: the schema of the database, and backups of everything."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli import output
from forager.cli.options import AsJson, Yes, argument, flags_of
from forager.cli.output import counted
from forager.cli.running import confirm
from forager.cli.steps import Steps
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.backup import BackupContents, Progress


app = typer.Typer(help="Database schema, backups and the embedded server.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Backup folder.")]


@contextmanager
def _server_url(context: typer.Context) -> Iterator[str]:
    from forager.db.database import reach_server, translated_errors

    with reach_server(flags_of(context).load()) as server, translated_errors():
        yield server.url


@app.command()
def current(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the database's schema version and the one this Forager needs."""
    from forager.db import schema

    with _server_url(context) as url:
        found = schema.current_version(url)
    if as_json:
        output.show_json({"database": found, "forager": schema.SCHEMA_VERSION})
        return
    output.say(f"database {found or 'empty'}, this Forager {schema.SCHEMA_VERSION}")
    if found != schema.SCHEMA_VERSION:
        output.note("`forager db upgrade` brings the database to this Forager's version.")


@app.command()
def url(context: typer.Context) -> None:
    """Print the connection string of the database. It contains the password, if there is one."""
    with _server_url(context) as found:
        output.say(found)


@app.command(context_settings={"ignore_unknown_options": True})
def psql(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[PSQL ARGUMENT]...", help="Passed to psql.")
    ] = None,
) -> None:
    """Open psql on the database, for example with -c "SELECT * FROM documents_active".

    The psql of the embedded server is used, or the one of the system.
    """
    from forager.db import schema
    from forager.db.clients import bundled_client, client_environment, installed_client

    with _server_url(context) as url:
        if schema.current_version(url) is None:
            schema.ensure_current(url)
        program = bundled_client("psql") or installed_client("psql")
        if program is None:
            raise InvalidInput(
                f"psql is not installed. The database is {url}",
                hint="Install the client programs of PostgreSQL: apt install postgresql-client",
            )
        with _interrupts_for_psql():
            command = [program, *(arguments or ())]
            done = subprocess.run(command, env=client_environment(url), check=False)
    raise typer.Exit(done.returncode)


@contextmanager
def _interrupts_for_psql() -> Iterator[None]:
    """Ctrl-C cancels a query of psql, which continues."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@app.command()
def stop(context: typer.Context) -> None:
    """Stop the embedded server; it keeps running for a while after the last command."""
    from forager.db.embedded import stop_lingering

    settings = flags_of(context).load()
    if settings.database_url is not None:
        raise InvalidInput("the database is not embedded: FORAGER_DATABASE_URL is set")
    stopped = stop_lingering(settings.home)
    output.say("the embedded server is stopped" if stopped else "the embedded server does not run")


@app.command()
def upgrade(
    context: typer.Context, revision: str = argument("Target version.", default="head")
) -> None:
    """Upgrade the schema to the version that this Forager needs. Every start does this too."""
    from forager.db import schema

    with _server_url(context) as url:
        schema.upgrade(url, revision)
        output.say(f"the database has schema {schema.current_version(url)}")


@app.command()
def downgrade(
    context: typer.Context,
    revision: Annotated[str, typer.Argument(help="Target version; `base` removes everything.")],
    yes: Yes = False,
) -> None:
    """Downgrade the schema for an older Forager. Data that it cannot store is deleted."""
    from forager.db import schema

    confirm(f"Go back to schema {revision}, and delete what it cannot hold?", yes=yes)
    with _server_url(context) as url:
        schema.downgrade(url, revision)
        output.say(f"the database has schema {schema.current_version(url) or 'none'}")
    output.note("The next start of this Forager upgrades it again: start the older one.")


@app.command()
def backup(context: typer.Context, folder: Folder, as_json: AsJson = False) -> None:
    """Back up database, archive, archived products and the encryption key while Forager runs.

    A repeated backup into the same folder copies only what is new. The folder contains secrets.
    """
    from forager.backup import save

    with _progress() as progress:
        copied = save(flags_of(context).load(), folder, progress=progress)
    _show(copied, folder, "saved to", as_json)


@app.command()
def restore(context: typer.Context, folder: Folder, as_json: AsJson = False) -> None:
    """Restore a backup into a new home folder and an empty database.

    Existing data is not overwritten.
    """
    from forager.backup import restore

    with _progress() as progress:
        copied = restore(flags_of(context).load(), folder, progress=progress)
    _show(copied, folder, "restored from", as_json)
    output.note("`forager doctor` looks whether all is well, `forager archive verify` reads it.")


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show each step of a backup, and how many files it has copied."""
    with Steps("") as steps:
        yield lambda step, files: steps.show(files, what=step)


def _show(copied: BackupContents, folder: Path, done: str, as_json: bool) -> None:
    if as_json:
        output.show_json({"folder": folder.absolute(), **output.plain(copied)})
        return
    files = copied.archive_files
    new = None if files is None else f"{counted(files, 'new file')} of the archive"
    archive = new or "no archive (it is in a bucket)"
    key = "the key of secrets" if copied.secret_key else "no key of secrets (there is none)"
    output.say(f"{done} {folder}: database of schema {copied.schema}, {archive}, {key}")
