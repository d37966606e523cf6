"""SimHash: 64 bits of a text, of which similar texts share most."""

from __future__ import annotations

from functools import lru_cache
from struct import pack
from zlib import crc32

BITS = 64
# words before and after that make a feature together
SHINGLE = 3
# one shingle in eight counts, chosen by its first word: the same ones in similar texts
SAMPLE_MASK = 7
# a shorter text has too few features to be compared
MIN_FEATURES = 16
# further words of a very long text do not count
MAX_WORDS = 50_000
_MIX = 0x9E3779B97F4A7C15
_LOW = (1 << BITS) - 1


def simhash(text: str) -> int | None:
    """As a signed number, which fits a bigint; None for a text that is too short."""
    words = text.lower().encode("utf-8", "replace").split()[:MAX_WORDS]
    last = len(words) - SHINGLE + 1
    chosen = [
        place for place, code in enumerate(map(crc32, words[:last])) if not code & SAMPLE_MASK
    ]
    # a shingle counts once, however often a table or a list repeats it
    shingles = set(map(crc32, (b" ".join(words[place : place + SHINGLE]) for place in chosen)))
    if len(shingles) < MIN_FEATURES:
        return None
    return _majority([code * _MIX & _LOW for code in shingles])


def distance(one: int, other: int) -> int:
    """In how many bits two hashes differ."""
    return ((one ^ other) & _LOW).bit_count()


def _majority(features: list[int]) -> int:
    """Each bit as most features have it. All features are one large number, a mask per bit."""
    number = int.from_bytes(pack(f"<{len(features)}Q", *features), "little")
    half = len(features) / 2
    found = 0
    for bit, mask in enumerate(_masks(-(-len(features) // _ROOM) * _ROOM)):
        if (number & mask).bit_count() > half:
            found |= 1 << bit
    return found - 2**BITS if found >> (BITS - 1) else found


# masks are made for multiples of this many features
_ROOM = 64


@lru_cache(maxsize=32)
def _masks(features: int) -> list[int]:
    every = int.from_bytes((1).to_bytes(8, "little") * features, "little")
    return [every << bit for bit in range(BITS)]
