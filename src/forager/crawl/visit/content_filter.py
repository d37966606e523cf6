"""The contents that a crawl has met: exact while they are few, a Bloom filter when they are many.

A false positive costs one query, so that the filter may be wrong now and then.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap

# Ten million contents make it wrong for about one in forty; memory is taken only as it fills.
_BITS = 27
_MASK = 2**_BITS - 1
_PROBES = 4
# A content sets bits on four pages of memory: up to this many, a set takes less
MAX_EXACT = 5_000


class ContentFilter:
    """Content hashes, which are random enough to be their own hashes."""

    def __init__(self) -> None:
        self._exact: set[int] = set()
        self._bits: mmap | None = None

    def add(self, content_hash: bytes) -> None:
        """Remember a content."""
        number = _number(content_hash)
        if self._bits is not None:
            _set_bits(self._bits, number)
            return
        self._exact.add(number)
        if len(self._exact) > MAX_EXACT:
            # a bytearray of this size would be written to, and so be taken, at once
            self._bits = mmap(-1, 2**_BITS // 8)
            for each in self._exact:
                _set_bits(self._bits, each)
            self._exact.clear()

    def __contains__(self, content_hash: bytes) -> bool:
        number = _number(content_hash)
        if (bits := self._bits) is None:
            return number in self._exact
        return all(bits[place >> 3] >> (place & 7) & 1 for place in _places(number))


def _number(content_hash: bytes) -> int:
    return int.from_bytes(content_hash[:16], "big")


def _set_bits(bits: mmap, number: int) -> None:
    for place in _places(number):
        bits[place >> 3] |= 1 << (place & 7)


def _places(number: int) -> Iterator[int]:
    for _ in range(_PROBES):
        yield number & _MASK
        number >>= _BITS
