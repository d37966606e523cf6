"""Keys for tests whose subject is not the first key, which must be an admin key."""

from __future__ import annotations

from typing import Any

from forager.access.caller import Scope
from forager.access.keys import MadeKey, any_key, create_key
from forager.db.database import Database


async def make_key(
    database: Database, name: str = "test", *, scope: Scope = Scope.OPERATE, **how: Any
) -> MadeKey:
    """Create a key, after an admin key if there is no key yet."""
    if scope is not Scope.ADMIN and not await any_key(database):
        await create_key(database, "first", scope=Scope.ADMIN)
    return await create_key(database, name, scope=scope, **how)
