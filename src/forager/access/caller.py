"""Who is asking: an owner with a scope, or a person at this machine."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from forager.access.errors import Forbidden
from forager.access.quota import NO_QUOTA, Quota
from forager.access.scope import Scope
from forager.hints import Hint, action

# stands for the owner of what was made without a key, where a column needs one
NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Caller:
    """`user_id` is None for somebody at this machine, where no key exists yet."""

    user_id: UUID | None
    scope: Scope
    key_id: str | None = None
    quota: Quota = NO_QUOTA

    @property
    def is_admin(self) -> bool:
        return self.scope is Scope.ADMIN

    @property
    def sees_only(self) -> UUID | None:
        """The owner whose things this caller sees; None: everybody's."""
        if self.is_admin:
            return None
        assert self.user_id is not None  # only admins come without a key
        return self.user_id

    @property
    def actor(self) -> str:
        """As histories name whoever did something."""
        return f"key {self.key_id}" if self.key_id else "user"

    def sees(self, owner: UUID | None) -> bool:
        return self.is_admin or (owner is not None and owner == self.user_id)

    def require(self, scope: Scope) -> None:
        if not self.scope.includes(scope):
            raise Forbidden(
                f"this needs the scope {scope}; this key has {self.scope}",
                hint=Hint("{} creates a key.", action("keys create", "NAME", scope=scope)),
            )


LOCAL = Caller(None, Scope.ADMIN)
