"""`forager keys`: API keys, their scopes and quotas."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any
from uuid import UUID

import typer

from forager.access import quotas
from forager.access.caller import Scope
from forager.access.key import ApiKey
from forager.access.keys import MadeKey, create_key, get_key, list_keys, revoke_key
from forager.access.quota import Quota, Usage
from forager.amounts import parse_duration
from forager.cli.options import Cursor, Limit, option
from forager.cli.output import Columns, note, plain, say, show_facts
from forager.cli.running import CommandContext, answers, lists
from forager.errors import InvalidInput

app = typer.Typer(help="API keys, their scopes and quotas.", no_args_is_help=True)

KeyId = Annotated[str, typer.Argument(metavar="KEY", help="Key ID.")]
STYLES = {"active": "green", "expired": "yellow", "revoked": "red"}


def _owner_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(
            f"{text[:40]!r} is not the ID of an owner", hint="`forager keys list` shows owners."
        ) from None


def _show_made(made: MadeKey) -> None:
    say(made.text)
    note(
        f"This is its only copy. Scope {made.key.scope}, owner {made.key.user_id}. Use it as:"
        ' curl -H "Authorization: Bearer fgr_…"'
    )


@app.command()
@answers(_show_made, document=lambda made: {"key": made.text, **plain(made.key)})
async def create(
    here: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Purpose of the key.")],
    scope: Scope = option(
        "read, operate (start and manage work), or admin (everything).", default=Scope.OPERATE
    ),
    owner: str | None = option("Owner of everything created with it.", show_default="a new owner"),
    expires: str | None = option("Time until it expires: 12h, 90d.", show_default="never"),
) -> object:
    """Create a key and print it once. After the first key, every request needs one."""
    life = None if expires is None else parse_duration(expires).total_seconds()
    user_id = None if owner is None else _owner_id(owner)
    return await create_key(here.database, name, scope=scope, user_id=user_id, expires_in=life)


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
    return await list_keys(here.database, cursor=cursor, limit=limit)


@app.command()
@answers(
    lambda found: _show(*found),
    document=lambda found: {**plain(found[0]), "quota": found[1], "usage": found[2]},
)
async def show(here: CommandContext, key: KeyId) -> object:
    """Show a key, its owner's quota and current usage."""
    found = await get_key(here.database, key)
    quota = await quotas.get_quota(here.database, found.user_id)
    return found, quota, await quotas.get_usage(here.database, found.user_id)


@app.command()
@answers(lambda found: f"{found.id} ({found.name}) is revoked")
async def revoke(here: CommandContext, key: KeyId) -> object:
    """Revoke a key permanently."""
    return await revoke_key(here.database, key)


@dataclass(frozen=True, slots=True)
class QuotaOptions:
    active_jobs: int | None = option(
        "Jobs that are pending, running or paused at the same time.", min=0
    )
    pages_per_job: int | None = option("Pages per crawl.", min=1)
    pages_per_day: int | None = option(
        "Pages per UTC day, over all crawls started on that day.", min=0
    )
    requests_per_minute: int | None = option("Requests per minute, over all API processes.", min=1)

    def value(self) -> Quota:
        return Quota(**asdict(self))


@app.command("set-quota")
@answers(lambda done: show_facts(_limits(done["quota"])))
async def set_quota(
    here: CommandContext,
    owner: Annotated[
        str, typer.Argument(metavar="OWNER", help="Owner ID, as shown by `keys list`.")
    ],
    quota: Annotated[Quota, QuotaOptions],
) -> object:
    """Set the quota of an owner; limits that are not given are removed."""
    user_id = _owner_id(owner)
    return {"user_id": user_id, "quota": await quotas.set_quota(here.database, user_id, quota)}


def _show(key: ApiKey, quota: Quota, usage: Usage) -> None:
    facts = {
        "id": key.id,
        "name": key.name,
        "scope": key.scope.value,
        "state": (key.state.value, STYLES[key.state]),
        "owner": key.user_id,
        "created": key.created_at,
        "expires": key.expires_at or "never",
        "revoked": key.revoked_at,
        "last used": key.last_used_at or "never",
        "active jobs": usage.active_jobs,
        "pages today": usage.pages_today,
    }
    show_facts({**facts, **_limits(quota)})


def _limits(quota: Quota) -> dict[str, Any]:
    return {
        f"limit of {name.replace('_', ' ')}": "no limit" if value is None else value
        for name, value in asdict(quota).items()
    }
