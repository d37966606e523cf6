"""Keys: made, shown once, revoked."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from forager.access import keys
from forager.access.scope import Scope
from forager.errors import InvalidInput
from forager.web.forms import Form, Submitted
from forager.web.page import Done, Page, action, new_router, page
from forager.web.visit import Administers

router = new_router()

PAGE_SIZE = 50
MAX_DAYS = 3650

Cursor = Annotated[str | None, Query(max_length=1000)]


@page(router, "/keys")
async def list_keys(visit: Administers, cursor: Cursor = None) -> Page:
    found = await keys.list_keys(visit.here.database, cursor=cursor, limit=PAGE_SIZE)
    return Page("keys.html", {"keys": found, "scopes": list(Scope)})


@action(router, "/keys")
async def create(visit: Administers, form: Submitted) -> Page:
    """The page with the key is the answer itself: its text must be in no address and no cookie."""
    days = form.number("days", least=1, most=MAX_DAYS)
    made = await keys.create_key(
        visit.here.database,
        form.text("name"),
        scope=_scope(form),
        expires_in=None if days is None else days * 86400.0,
    )
    return Page("key_made.html", {"made": made, "was_open": visit.is_open})


@action(router, "/keys/{key_id}/revoke")
async def revoke(visit: Administers, form: Submitted, key_id: str) -> Done:  # noqa: ARG001
    key = await keys.revoke_key(visit.here.database, key_id)
    return Done(f"Key {key.name} revoked.", to="/keys")


def _scope(form: Form) -> Scope:
    try:
        return Scope(form.text("scope"))
    except ValueError:
        raise InvalidInput(f"a scope is one of {', '.join(Scope)}") from None
