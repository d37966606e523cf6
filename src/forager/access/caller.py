"""The caller of a request: an owner with a scope, or a person at this machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from forager.access.quota import NO_QUOTA, Quota
from forager.errors import ForagerError, NotAllowed, NotPermitted, NotYet
from forager.hints import Hint, action


class Scope(StrEnum):
    READ = "read"  # read the data of its owner
    OPERATE = "operate"  # and start, steer and delete it
    ADMIN = "admin"  # everything of all owners, and the installation itself

    def includes(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(other)


# stands for the owner of what was made without a key, where a column needs one
NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Caller:
    """`user_id` is None for a local caller while no key exists."""

    user_id: UUID | None
    scope: Scope
    key_id: str | None = None
    quota: Quota = NO_QUOTA

    @property
    def is_admin(self) -> bool:
        return self.scope is Scope.ADMIN

    @property
    def sees_only(self) -> UUID | None:
        """The owner to which this caller is restricted; None: all owners."""
        if self.is_admin:
            return None
        assert self.user_id is not None  # only admins come without a key
        return self.user_id

    @property
    def actor(self) -> str:
        """The actor in audit logs."""
        return f"key {self.key_id}" if self.key_id else "user"

    def sees(self, owner: UUID | None) -> bool:
        return self.is_admin or (owner is not None and owner == self.user_id)

    def require(self, scope: Scope, what: str = "this") -> None:
        if not self.scope.includes(scope):
            raise Forbidden(
                f"{what} needs the scope {scope}; this key has {self.scope}",
                hint=Hint("{} creates a key.", action("keys create", "NAME", scope=scope)),
            )


LOCAL = Caller(None, Scope.ADMIN)
# sees nothing: the caller before one is known
STRANGER = Caller(NOBODY, Scope.READ)


class Unauthorised(ForagerError):
    """A key is needed, and none that is valid was given."""

    exit_code = 4


class Forbidden(NotPermitted):
    """This key may not be used for that."""


class QuotaExceeded(NotYet):
    """The owner has used up what was granted."""

    def __init__(
        self,
        message: str,
        *,
        what: str,
        used: int,
        limit: int,
        retry_after: float,
        hint: str | Hint | None = None,
    ) -> None:
        super().__init__(message, retry_after=retry_after, hint=hint)
        self.what = what
        self.used = used
        self.limit = limit


class StillAnswering(NotAllowed):
    """The first request with this Idempotency-Key is still being answered."""


class OtherRequest(NotAllowed):
    """This Idempotency-Key was used for another request."""
