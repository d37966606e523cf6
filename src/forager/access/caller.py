"""The caller of a request: an owner with a scope, or a person at this machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from forager.access.quota import NO_QUOTA, Quota
from forager.errors import ForagerError, NotAllowed, NotPermitted, TooManyRequests
from forager.hints import Hint, action
from forager.operations.operation import Context
from forager.operations.operation import Scope as Scope


class Visibility(StrEnum):
    """Which jobs and sources a key sees. Those without an owner are the installation's."""

    EVERYTHING = "everything"  # of all owners, and those without one
    OWN = "own"  # only those of the same owner


# stands for the owner of what was made without a key, where a column needs one
NO_OWNER = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Caller:
    """`user_id` is None for a local caller while no key exists."""

    user_id: UUID | None
    scope: Scope
    key_id: str | None = None
    quota: Quota = NO_QUOTA
    visibility: Visibility = Visibility.OWN
    # of the person at this machine
    name: str = ""

    @property
    def is_admin(self) -> bool:
        return self.scope is Scope.ADMIN

    @property
    def sees_only(self) -> UUID | None:
        """The owner to which this caller is restricted; None: all owners."""
        if self.is_admin or self.visibility is Visibility.EVERYTHING:
            return None
        assert self.user_id is not None  # only admins come without a key
        return self.user_id

    @property
    def actor(self) -> str:
        """The actor in audit logs."""
        return f"key {self.key_id}" if self.key_id else f"user {self.name}".rstrip()

    def sees(self, owner: UUID | None) -> bool:
        """Whether the caller sees objects of an owner; None: those of the installation."""
        return self.sees_only is None or owner == self.sees_only

    def require(self, scope: Scope, what: str = "this") -> None:
        """Raise Forbidden unless the caller has this scope; `what` names what needs it."""
        if not self.scope.includes(scope):
            raise Forbidden(
                f"{what} needs the scope {scope}; this key has {self.scope}",
                hint=Hint("{} creates a key.", action("keys create", "NAME", scope=scope)),
            )


LOCAL = Caller(None, Scope.ADMIN, visibility=Visibility.EVERYTHING)


def caller_of(context: Context) -> Caller:
    """The caller of an operation."""
    return context.caller or LOCAL


# sees nothing: the caller before one is known
STRANGER = Caller(NO_OWNER, Scope.READ)


class Unauthorized(ForagerError):
    """A key or token is needed, and none that is valid was given."""

    exit_code = 4
    # where the metadata of the issuer's tokens is, if they are accepted
    metadata_url: str | None = None


class Forbidden(NotPermitted):
    """This key may not be used for that."""


class QuotaExceeded(TooManyRequests):
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


class RequestInProgress(NotAllowed):
    """The first request with this Idempotency-Key is still being answered."""


class OtherRequest(NotAllowed):
    """This Idempotency-Key was used for another request."""
