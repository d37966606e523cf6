"""Identifiers made by the client: UUIDv7, so that rows made together stay together in an index."""

from __future__ import annotations

import os
import time
from uuid import UUID


def new_id() -> UUID:
    """A UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits."""
    value = (time.time_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF) << 80
    value |= int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


# shared lock to give new jobs the region of their domain, exclusive lock to change that region
REGION_LOCK = 0x5245_4749
