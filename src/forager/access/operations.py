"""Operations on keys and quotas, which are for admins."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from forager.access import keys as service
from forager.access import quota as quota_rows
from forager.access import quotas
from forager.access.caller import Caller, Scope, Visibility, caller_of
from forager.access.key import ApiKey
from forager.access.keys import LONGEST_LIFE, MAX_NAME
from forager.operations.fields import FoundBy
from forager.operations.models import (
    LARGEST_BIGINT,
    LARGEST_INT,
    Listed,
    Paging,
    PlainText,
    RequestModel,
    ResponseModel,
    Time,
    example,
    listed,
)
from forager.operations.operation import Columns, Context, Group

keys = Group(
    "keys", "API keys, their scopes and quotas.", page="Keys", sees=Scope.ADMIN, changes=Scope.ADMIN
)

KeyId = Annotated[
    PlainText,
    Field(min_length=1, max_length=100, examples=["0123456789ab"], description="ID of the key."),
]


async def _find_owner(context: Context, name: str) -> UUID:
    return await service.find_owner(context.database, name)


UserId = Annotated[UUID, Field(description="ID of the owner."), FoundBy(_find_owner, "name")]


_ABOUT_KEY = {
    "expires_at": "When the key expires; null: never.",
    "revoked_at": "When the key was revoked.",
}


class Key(ResponseModel, row=ApiKey, about=_ABOUT_KEY):
    """A key without its secret."""

    user_id: UUID = Field(description="Owner of everything created with the key.")
    owner: str | None = Field(description="Name of the owner, if it has one.")
    visibility: Visibility = Field(description="The jobs and sources that the key sees.")
    last_used_at: Time | None = Field(description="Within five minutes.")


class NewKey(Key):
    """A key with its text, which is shown once."""

    key: str = Field(examples=["fgr_0123456789ab_…"], description="Shown only in this answer.")


class KeyOrder(RequestModel):
    """A new key: its purpose, scope and owner."""

    model_config = example(name="nightly refresh", scope="operate", expires_in_days=90)

    name: Annotated[PlainText, Field(min_length=1, max_length=MAX_NAME)] = Field(
        description="Purpose of the key."
    )
    scope: Scope = Field(
        default=Scope.OPERATE,
        description="read, operate (start and manage work), or admin (everything).",
    )
    visibility: Visibility | None = Field(
        default=None,
        description="everything: jobs and sources of all owners, and those without an owner. own:"
        " only those of its owner, which is the default. Admin keys always see everything.",
    )
    owner: Annotated[PlainText, Field(min_length=1, max_length=MAX_NAME)] | None = Field(
        default=None,
        description="Name of the owner, who is added if there is none with this name; by default"
        " a new owner without a name.",
    )
    user_id: UUID | None = Field(default=None, description="ID of the owner, instead of its name.")
    expires_in_days: float | None = Field(
        default=None, gt=0, le=LONGEST_LIFE / 86400, description="Never expires by default."
    )


class Quota(RequestModel):
    """The limits of an owner; null means no limit."""

    model_config = example(active_jobs=5, pages_per_job=10000, pages_per_day=50000)

    active_jobs: int | None = Field(
        default=None,
        ge=0,
        le=LARGEST_INT,
        description="Jobs that are pending, running or paused at the same time.",
    )
    pages_per_job: int | None = Field(
        default=None, ge=1, le=LARGEST_BIGINT, description="Pages per crawl."
    )
    pages_per_day: int | None = Field(
        default=None, ge=0, le=LARGEST_BIGINT, description="Pages of all crawls per UTC day."
    )
    requests_per_minute: int | None = Field(
        default=None, ge=1, le=LARGEST_INT, description="Requests over all API processes."
    )

    def value(self) -> quota_rows.Quota:
        return quota_rows.Quota(**self.model_dump())


_ABOUT_LIMITS = {
    "active_jobs": "Jobs that are waiting, running or paused; null: no limit.",
    "pages_per_job": "Null: no limit.",
    "pages_per_day": "Pages of all crawls per day, in UTC; null: no limit.",
    "requests_per_minute": "Null: no limit.",
}


class Limits(ResponseModel, row=quota_rows.Quota, about=_ABOUT_LIMITS):
    """The quota of an owner."""


class Owner(ResponseModel):
    """The quota of an owner, and its current usage."""

    user_id: UUID
    quota: Limits = Field(description="Limits of the owner.")
    active_jobs: int = Field(description="Jobs that are waiting, running or paused.")
    pages_today: int = Field(description="An active job counts all pages that it may still fetch.")


STYLES = {"active": "green", "expired": "yellow", "revoked": "red"}

KEY_COLUMNS: Columns = {
    "ID": "id",
    "NAME…": "name",
    "SCOPE": lambda key: key.scope.value,
    "STATE": lambda key: (key.state.value, STYLES[key.state]),
    "VISIBILITY": lambda key: key.visibility.value,
    "OWNER": lambda key: key.owner or str(key.user_id),
    "USED": "last_used_at",
}


@keys.operation(
    "list",
    "GET /keys",
    columns=KEY_COLUMNS,
    none="There are no keys: the API is open to this machine alone.",
)
async def list_keys(context: Context, paging: Paging) -> Listed[Key]:
    """List keys, newest first, including revoked and expired ones."""
    return listed(await service.list_keys(context.database, **paging), Key.of)


@keys.operation(
    "create",
    "POST /keys",
    arguments=("name",),
    created=True,
    secret=True,
    done="{key}",
    note="This is its only copy. Scope {scope}, owner {user_id}, sees {visibility}. Use it as:"
    ' curl -H "Authorization: Bearer fgr_…"',
    button="Create key",
)
async def create(context: Context, order: KeyOrder) -> NewKey:
    """Create a key. Its text is only in this response.

    Once a key exists, every request needs one, on this machine too. The first key must be an
    admin key.
    """
    given: dict[str, Any] = dict(order)
    days = given.pop("expires_in_days")
    expires_in = None if days is None else days * 86400
    made = await service.create_key(context.database, **given, expires_in=expires_in)
    return NewKey.of(made.key, key=made.text)


@keys.operation("show", "GET /keys/{key_id}")
async def show(context: Context, key_id: KeyId) -> Key:
    """Show a key."""
    return Key.of(await service.get_key(context.database, key_id))


@keys.operation("revoke", "DELETE /keys/{key_id}", done="{id} ({name}) is revoked", button="Revoke")
async def revoke(context: Context, key_id: KeyId) -> Key:
    """Revoke a key immediately and permanently."""
    return Key.of(await service.revoke_key(context.database, key_id))


@keys.operation("owner", "GET /owners/{user_id}")
async def owner(context: Context, user_id: UserId) -> Owner:
    """The quota of an owner, and its current usage."""
    quota = await quotas.get_quota(context.database, user_id)
    usage = await quotas.get_usage(context.database, user_id)
    return Owner.of(usage, user_id=user_id, quota=quota)


@keys.operation("set-quota", "PUT /owners/{user_id}/quota", page="")
async def set_quota(context: Context, user_id: UserId, order: Quota) -> Owner:
    """Set the quota of an owner; omitted limits are removed."""
    await quotas.set_quota(context.database, user_id, order.value())
    return await owner(context, user_id)


_ABOUT_ME = {"key_id": "ID of the key; null without a key.", "name": "Name of the local user."}


class Me(ResponseModel, row=Caller, about=_ABOUT_ME):
    """The caller; without a key, a user of this machine."""

    visibility: Visibility = Field(
        description="The jobs and sources that the caller sees; admins see everything."
    )
    quota: Limits = Field(description="Limits of the caller.")


# only the API has callers, so that there is no command
callers = Group("keys", "The caller of a request.")


@callers.operation("me", "GET /me")
async def me(context: Context) -> Me:
    """Show the caller: owner, scope and quota."""
    return Me.of(caller_of(context))
