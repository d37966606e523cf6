"""Check of API keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from forager.access.caller import Scope
from forager.access.key import KeyState
from forager.access.keys import list_keys
from forager.checks import Result, Topic, check, warn
from forager.db.database import Database
from forager.settings import Settings

SOON = timedelta(days=7)
LISTED = 1000


@check("keys", Topic.WORK, "An unused key is an unnecessary risk.")
async def check_keys(database: Database, _settings: Settings) -> Result:
    keys = (await list_keys(database, limit=LISTED)).items
    if not keys:
        return "none"
    active = [key for key in keys if key.state is KeyState.ACTIVE]
    if not active:
        create = "No key can use the API: forager keys create NAME --scope admin"
        return warn("all have expired or were revoked", create)
    admins = sum(key.scope is Scope.ADMIN for key in active)
    message = f"{len(active)} active, {admins} of them admin"
    soon = datetime.now(UTC) + SOON
    ending = [key for key in active if key.expires_at is not None and key.expires_at < soon]
    if not ending:
        return message
    return warn(
        f"{message}; keys that expire within a week",
        "Create new ones before: forager keys create NAME.",
        found=[f"{key.name} ({key.id})" for key in ending],
    )
