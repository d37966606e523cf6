"""SimHash: 64 bits of a text, of which similar texts share most."""

from __future__ import annotations

import re
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase
from struct import pack
from zlib import crc32

BITS = 64
# a shorter text has too few features to be compared
MIN_FEATURES = 16
MAX_FEATURES = 256
# the rest of a very long text does not count
MAX_CHARACTERS = 400_000
# Features are three words in a row. To be fast, only those count that begin with one of two
# letters, which are the same ones in similar texts: about one in ten.
_SHINGLES = re.compile(rb" (?=([sp]\S* +\S+ +\S+))")
# lower case and spaces in one pass, which was most of the time; other letters keep their case
_SPELLING = bytes.maketrans(
    b"\t\n\r\f\v" + ascii_uppercase.encode(), b"     " + ascii_lowercase.encode()
)
_MIX = 0x9E3779B97F4A7C15
_LOW = (1 << BITS) - 1


def simhash(text: str) -> int | None:
    """As a signed number, which fits a bigint; None for a text that is too short."""
    words = text[:MAX_CHARACTERS].encode("utf-8", "replace").translate(_SPELLING)
    # a shingle counts once, however often a table or a list repeats it
    shingles = set(map(crc32, _SHINGLES.findall(words)))
    if len(shingles) < MIN_FEATURES:
        return None
    # the smallest codes of many, which are the same in similar texts
    few = sorted(shingles)[:MAX_FEATURES] if len(shingles) > MAX_FEATURES else shingles
    return _majority([code * _MIX & _LOW for code in few])


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
