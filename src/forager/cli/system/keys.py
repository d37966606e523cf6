"""`forager keys`: who may use the API, for what, and how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from forager.access.caller import Scope
from forager.amounts import parse_duration
from forager.cli.options import AsJson, Cursor, Limit, option
from forager.cli.output import (
    Columns,
    long_time,
    note,
    plain,
    say,
    show_json,
    show_table,
)
from forager.cli.running import CommandContext, answers, lists, with_database

if TYPE_CHECKING:
    from forager.access.key import ApiKey
    from forager.access.quota import Quota, Usage

app = typer.Typer(help="API keys, their scopes and quotas.", no_args_is_help=True)

KeyId = Annotated[str, typer.Argument(metavar="KEY", help="Key ID.")]
STYLES = {"active": "green", "expired": "yellow", "revoked": "red"}
NO_LIMIT = "no limit"


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Purpose of the key.")],
    scope: Scope = option(
        "read, operate (start and manage work), or admin (everything).", default=Scope.OPERATE
    ),
    owner: UUID | None = option("Owner of everything created with it.", show_default="a new owner"),
    expires: str | None = option("Time until it expires: 12h, 90d.", show_default="never"),
    as_json: AsJson = False,
) -> None:
    """Create a key and print it once. After the first key, every request needs one."""
    from forager.access.keys import create_key

    life = None if expires is None else parse_duration(expires).total_seconds()
    made = with_database(
        context, lambda db, _: create_key(db, name, scope=scope, user_id=owner, expires_in=life)
    )
    if as_json:
        return show_json({"key": made.text, **plain(made.key)})
    say(made.text)
    return note(
        f"This is its only copy. Scope {made.key.scope}, owner {made.key.user_id}. Use it as:"
        ' curl -H "Authorization: Bearer fgr_…"'
    )


_KEY_COLUMNS: Columns = {
    "ID": "id",
    "NAME…": "name",
    "SCOPE": lambda key: key.scope.value,
    "STATE": lambda key: (key.state.value, STYLES[key.state]),
    "OWNER": "user_id",
    "USED": "last_used_at",
}


@app.command("list")
@lists(_KEY_COLUMNS, none="There are no keys: the API is open to this machine alone.")
async def list_(here: CommandContext, limit: Limit = 100, cursor: Cursor = None) -> object:
    """List keys, newest first."""
    from forager.access.keys import list_keys

    return await list_keys(here.database, cursor=cursor, limit=limit)


@app.command()
@answers(
    lambda found: _show(*found),
    document=lambda found: {**plain(found[0]), "quota": found[1], "usage": found[2]},
)
async def show(here: CommandContext, key: KeyId) -> object:
    """Show a key, its owner's quota and current usage."""
    from forager.access.keys import get_key
    from forager.access.quotas import get_quota, get_usage

    found = await get_key(here.database, key)
    quota = await get_quota(here.database, found.user_id)
    return found, quota, await get_usage(here.database, found.user_id)


@app.command()
@answers(lambda found: f"{found.id} ({found.name}) is revoked")
async def revoke(here: CommandContext, key: KeyId) -> object:
    """Revoke a key permanently."""
    from forager.access.keys import revoke_key

    return await revoke_key(here.database, key)


@app.command("set-quota")
def set_quota(
    context: typer.Context,
    owner: Annotated[
        UUID, typer.Argument(metavar="OWNER", help="Owner ID, as shown by `keys list`.")
    ],
    active_jobs: int | None = option(
        "Jobs that are pending, running or paused at the same time.", min=0
    ),
    pages_per_job: int | None = option("Pages per crawl.", min=1),
    pages_per_day: int | None = option(
        "Pages per UTC day, over all crawls started on that day.", min=0
    ),
    requests_per_minute: int | None = option("Requests per minute, over all API processes.", min=1),
    as_json: AsJson = False,
) -> None:
    """Set the quota of an owner; limits that are not given are removed."""
    from forager.access import quotas
    from forager.access.quota import Quota

    wanted = Quota(active_jobs, pages_per_job, pages_per_day, requests_per_minute)
    done = with_database(context, lambda db, _: quotas.set_quota(db, owner, wanted))
    if as_json:
        return show_json({"user_id": owner, "quota": done})
    return show_table({"": {"style": "dim"}, " ": {}}, _limits(done))


def _show(key: ApiKey, quota: Quota, usage: Usage) -> None:
    facts = {
        "id": key.id,
        "name": key.name,
        "scope": key.scope.value,
        "state": (key.state.value, STYLES[key.state]),
        "owner": key.user_id,
        "created": long_time(key.created_at),
        "expires": long_time(key.expires_at) or "never",
        "revoked": long_time(key.revoked_at),
        "last used": long_time(key.last_used_at) or "never",
        "active jobs": usage.active_jobs,
        "pages today": usage.pages_today,
    }
    rows = [(name, value) for name, value in facts.items() if value != ""]
    show_table({"": {"style": "dim"}, " ": {}}, [*rows, *_limits(quota)])


def _limits(quota: Quota) -> list[tuple[str, Any]]:
    return [
        (f"limit of {name.replace('_', ' ')}", NO_LIMIT if value is None else value)
        for name in quota.__slots__
        for value in [getattr(quota, name)]
    ]
