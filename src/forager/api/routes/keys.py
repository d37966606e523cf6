"""Keys and quotas: for admins, and to each what is its own."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path
from pydantic import Field
from starlette.responses import Response

from forager.access import keys, quotas
from forager.access import quota as quota_rows
from forager.access.caller import Caller, Scope
from forager.access.key import ApiKey
from forager.access.keys import LONGEST_LIFE, MAX_NAME
from forager.api.idempotency import OnlyOnce
from forager.api.limits import Listed, Paged, listed
from forager.api.models import LARGEST_BIGINT, LARGEST_INT, Order, PlainText, Time, View
from forager.api.models import example as example_of
from forager.api.services import Administers, Reads


class Key(View, row=ApiKey):
    """A key without its secret."""

    user_id: UUID = Field(description="Owner of everything created with the key.")
    last_used_at: Time | None = Field(description="Within five minutes.")


class NewKey(Key):
    """A key with its text, which is shown once."""

    key: str = Field(examples=["fgr_0123456789ab_…"])


class KeyOrder(Order):
    model_config = example_of(name="nightly refresh", scope="operate", expires_in_days=90)

    name: Annotated[PlainText, Field(min_length=1, max_length=MAX_NAME)]
    scope: Scope = Scope.OPERATE
    user_id: UUID | None = Field(default=None, description="Owner; a new one by default.")
    expires_in_days: float | None = Field(
        default=None, gt=0, le=LONGEST_LIFE / 86400, description="Never expires by default."
    )


class Quota(Order):
    """The limits of an owner; null means no limit."""

    model_config = example_of(active_jobs=5, pages_per_job=10000, pages_per_day=50000)

    active_jobs: int | None = Field(default=None, ge=0, le=LARGEST_INT)
    pages_per_job: int | None = Field(default=None, ge=1, le=LARGEST_BIGINT)
    pages_per_day: int | None = Field(
        default=None, ge=0, le=LARGEST_BIGINT, description="Days are those of UTC."
    )
    requests_per_minute: int | None = Field(default=None, ge=1, le=LARGEST_INT)

    def value(self) -> quota_rows.Quota:
        return quota_rows.Quota(**self.model_dump())


class Limits(View, row=quota_rows.Quota):
    """The quota of an owner."""


class Owner(View):
    """The quota of an owner, and its current usage."""

    user_id: UUID
    quota: Limits
    active_jobs: int
    pages_today: int = Field(description="An active job counts all pages that it may still fetch.")


class Me(View, row=Caller):
    """The caller; without a key, a user of this machine."""

    quota: Limits


router = APIRouter(tags=["keys"])

KeyId = Annotated[PlainText, Path(min_length=1, max_length=100, examples=["0123456789ab"])]


@router.get("/me")
async def me(here: Reads) -> Me:
    """Show the caller: owner, scope and quota."""
    return Me.of(here.caller)


@router.get("/keys")
async def list_keys(here: Administers, paging: Paged) -> Listed[Key]:
    """List keys, newest first, including revoked and expired ones."""
    return listed(await keys.list_keys(here.database, **paging), Key.of)


@router.post("/keys", status_code=201, response_model=NewKey)
async def create(order: KeyOrder, here: Administers, once: OnlyOnce) -> Response:
    """Create a key. Its text is only in this response.

    Once a key exists, every request needs one, on this machine too.
    """
    days = order.expires_in_days
    return await once.do(
        lambda here: keys.create_key(
            here.database,
            order.name,
            scope=order.scope,
            user_id=order.user_id,
            expires_in=None if days is None else days * 86400,
        ),
        lambda made: NewKey.of(made.key, key=made.text),
        status=201,
        secret=True,
    )


@router.get("/keys/{key_id}")
async def show(key_id: KeyId, here: Administers) -> Key:
    """Show a key."""
    return Key.of(await keys.get_key(here.database, key_id))


@router.delete("/keys/{key_id}")
async def revoke(key_id: KeyId, here: Administers) -> Key:
    """Revoke a key immediately and permanently."""
    return Key.of(await keys.revoke_key(here.database, key_id))


@router.get("/owners/{user_id}")
async def owner(user_id: UUID, here: Administers) -> Owner:
    """The quota of an owner, and its current usage."""
    quota = await quotas.get_quota(here.database, user_id)
    usage = await quotas.get_usage(here.database, user_id)
    return Owner.of(usage, user_id=user_id, quota=quota)


@router.put("/owners/{user_id}/quota")
async def set_quota(user_id: UUID, order: Quota, here: Administers) -> Owner:
    """Set the quota of an owner; omitted limits are removed."""
    await quotas.set_quota(here.database, user_id, order.value())
    return await owner(user_id, here)
