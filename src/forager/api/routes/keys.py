"""Keys and quotas: for admins, and to each what is its own."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path
from starlette.responses import Response

from forager.access import keys, quotas
from forager.api.idempotency import OnlyOnce
from forager.api.models.keys import Key, KeyOrder, Limits, Me, NewKey, Owner, Quota
from forager.api.models.values import PlainText
from forager.api.paging import Cursor, Limit, Listed, listed
from forager.api.services import Admin, Here, Reader, Services

router = APIRouter(tags=["keys"])

# the scope is all that is asked of the caller in most of them
# ruff: noqa: ARG001

KeyId = Annotated[PlainText, Path(min_length=1, max_length=100, examples=["0123456789ab"])]


@router.get("/me")
async def me(caller: Reader) -> Me:
    """Who the caller is, and what it may use."""
    return Me(
        key_id=caller.key_id,
        user_id=caller.user_id,
        scope=caller.scope,
        quota=Limits.model_validate(caller.quota),
    )


@router.get("/keys")
async def list_keys(
    here: Here, caller: Admin, limit: Limit = 50, cursor: Cursor = None
) -> Listed[Key]:
    """Keys, newest first, those that no longer work included."""
    return listed(await keys.list_keys(here.database, cursor=cursor, limit=limit), Key.of)


@router.post("/keys", status_code=201, response_model=NewKey)
async def create(order: KeyOrder, caller: Admin, once: OnlyOnce) -> Response:
    """Make a key. Its text is in this answer and nowhere else.

    With the first key the server asks everybody for one, also on this machine.
    """
    days = order.expires_in_days

    async def make(here: Services) -> NewKey:
        made = await keys.create_key(
            here.database,
            order.name,
            scope=order.scope,
            user_id=order.user_id,
            expires_in=None if days is None else days * 86400,
        )
        return NewKey.of_made(made)

    return await once.do(make, status=201, secret=True)


@router.get("/keys/{key_id}")
async def show(key_id: KeyId, here: Here, caller: Admin) -> Key:
    """One key."""
    return Key.of(await keys.get_key(here.database, key_id))


@router.post("/keys/{key_id}/revoke")
async def revoke(key_id: KeyId, here: Here, caller: Admin) -> Key:
    """End a key at once and for good."""
    return Key.of(await keys.revoke_key(here.database, key_id))


@router.get("/owners/{user_id}")
async def owner(user_id: UUID, here: Here, caller: Admin) -> Owner:
    """An owner's quota, and what of it is in use."""
    quota = await quotas.get_quota(here.database, user_id)
    return Owner.of(user_id, quota, await quotas.get_usage(here.database, user_id))


@router.put("/owners/{user_id}/quota")
async def set_quota(user_id: UUID, order: Quota, here: Here, caller: Admin) -> Owner:
    """Set what an owner may use; limits that are left out are lifted."""
    quota = await quotas.set_quota(here.database, user_id, order.value())
    return Owner.of(user_id, quota, await quotas.get_usage(here.database, user_id))
