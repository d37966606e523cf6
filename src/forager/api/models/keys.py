"""Keys and quotas."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from pydantic import Field

from forager.access import key as keys
from forager.access import quota as quotas
from forager.access.caller import Scope
from forager.access.key import KeyState
from forager.access.keys import LONGEST_LIFE, MAX_NAME, MadeKey
from forager.api.models.values import LARGEST_BIGINT, LARGEST_INT, Order, PlainText, Time, View
from forager.api.models.values import example as example_of


class Key(View):
    """A key without its secret."""

    id: str
    name: str
    user_id: UUID = Field(description="The owner of what is made with it.")
    scope: Scope
    state: KeyState
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None
    last_used_at: Time | None = Field(description="Within five minutes.")

    @classmethod
    def of(cls, key: keys.ApiKey) -> Key:
        return cls.model_validate(key)


class NewKey(Key):
    """A key with its text, which is shown this once."""

    key: str = Field(examples=["fgr_0123456789ab_…"])

    @classmethod
    def of_made(cls, made: MadeKey) -> NewKey:
        return cls.model_validate({**Key.of(made.key).model_dump(), "key": made.text})


class KeyOrder(Order):
    model_config = example_of(name="nightly refresh", scope="operate", expires_in_days=90)

    name: Annotated[PlainText, Field(min_length=1, max_length=MAX_NAME)]
    scope: Scope = Scope.OPERATE
    user_id: UUID | None = Field(default=None, description="The owner; by default a new one.")
    expires_in_days: float | None = Field(
        default=None, gt=0, le=LONGEST_LIFE / 86400, description="By default it does not expire."
    )


class Quota(Order):
    """What an owner may use; null means no limit."""

    model_config = example_of(active_jobs=5, pages_per_job=10000, pages_per_day=50000)

    active_jobs: int | None = Field(default=None, ge=0, le=LARGEST_INT)
    pages_per_job: int | None = Field(default=None, ge=1, le=LARGEST_BIGINT)
    pages_per_day: int | None = Field(
        default=None, ge=0, le=LARGEST_BIGINT, description="Days are those of UTC."
    )
    requests_per_minute: int | None = Field(default=None, ge=1, le=LARGEST_INT)

    def value(self) -> quotas.Quota:
        return quotas.Quota(**self.model_dump())


class Limits(View):
    """A quota as it is set."""

    active_jobs: int | None
    pages_per_job: int | None
    pages_per_day: int | None
    requests_per_minute: int | None


class Owner(View):
    """An owner's quota, and what of it is in use."""

    user_id: UUID
    quota: Limits
    active_jobs: int
    pages_today: int = Field(description="A job that goes on counts with all it may still fetch.")

    @classmethod
    def of(cls, user_id: UUID, quota: quotas.Quota, usage: quotas.Usage) -> Owner:
        return cls(
            user_id=user_id,
            quota=Limits.model_validate(quota),
            active_jobs=usage.active_jobs,
            pages_today=usage.pages_today,
        )


class Me(View):
    """Who the caller is; without a key, somebody at this machine."""

    key_id: str | None
    user_id: UUID | None
    scope: Scope
    quota: Limits
