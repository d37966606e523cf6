"""`forager db`: the schema of the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from forager.cli import output
from forager.cli.asking import confirm
from forager.cli.flags import flags_of
from forager.cli.options import AsJson, Yes

app = typer.Typer(help="Look at and move the database's schema.", no_args_is_help=True)


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
def upgrade(
    context: typer.Context,
    revision: Annotated[str, typer.Argument(help="Version to go to.")] = "head",
) -> None:
    """Bring the schema to this Forager's version. Every start does this too."""
    from forager.db import schema

    with _server_url(context) as url:
        schema.upgrade(url, revision)
        output.say(f"the database has schema {schema.current_version(url)}")


@app.command()
def downgrade(
    context: typer.Context,
    revision: Annotated[str, typer.Argument(help="Version to go back to; `base`: to nothing.")],
    yes: Yes = False,
) -> None:
    """Undo schema changes, for an older Forager. Data that it cannot hold is deleted."""
    from forager.db import schema

    confirm(f"Go back to schema {revision}, and delete what it cannot hold?", yes=yes)
    with _server_url(context) as url:
        schema.downgrade(url, revision)
        output.say(f"the database has schema {schema.current_version(url) or 'none'}")
    output.note("The next start of this Forager upgrades it again: start the older one.")
