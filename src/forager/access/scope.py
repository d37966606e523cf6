"""What a key may be used for: each scope includes those before it."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    READ = "read"  # look at what its owner has
    OPERATE = "operate"  # and start, steer and delete it
    ADMIN = "admin"  # everything of everybody, and the installation itself

    def includes(self, other: Scope) -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(other)
