"""API keys: `fgr_<id>_<secret>`. The id finds the key, the secret proves it.

Only a hash of the secret is stored. SHA-256 is right here, and a slow password hash would be
wrong: the secret is 256 random bits, which cannot be guessed however fast a guess is checked, and
a check is made with every request.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from uuid import UUID

from forager.access.caller import Scope, Visibility
from forager.access.quota import NO_QUOTA, Quota

ID_BYTES = 6
SECRET_BYTES = 32
_KEY = re.compile(r"fgr_([0-9a-f]{12})_([0-9a-f]{64})")


class KeyState(StrEnum):
    """The state of a key; only an active one is accepted."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key without its secret: all of it can be shown."""

    id: str
    name: str
    user_id: UUID
    # the name of the owner, if it has one
    owner: str | None
    scope: Scope
    visibility: Visibility
    state: KeyState
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", Scope(self.scope))
        object.__setattr__(self, "visibility", Visibility(self.visibility))
        object.__setattr__(self, "state", KeyState(self.state))


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key as it is looked up with each request: with its hash, and its owner's quota."""

    key: ApiKey
    secret_hash: bytes = field(repr=False)
    quota: Quota = NO_QUOTA


@dataclass(frozen=True, slots=True)
class Credentials:
    """The two halves of a key's text."""

    id: str
    secret: str = field(repr=False)

    @property
    def text(self) -> str:
        """The key as its owner gives it."""
        return f"fgr_{self.id}_{self.secret}"

    @property
    def secret_hash(self) -> bytes:
        """What is stored of the secret."""
        return sha256(self.secret.encode()).digest()

    def proves(self, secret_hash: bytes) -> bool:
        """Whether the secret is the one with this hash, compared in constant time."""
        return hmac.compare_digest(self.secret_hash, secret_hash)


def new_credentials() -> Credentials:
    """A new random key."""
    return Credentials(secrets.token_hex(ID_BYTES), secrets.token_hex(SECRET_BYTES))


def parse_credentials(text: str) -> Credentials | None:
    """A key from a header; None if the text is none."""
    match = _KEY.fullmatch(text.strip())
    return None if match is None else Credentials(match[1], match[2])
