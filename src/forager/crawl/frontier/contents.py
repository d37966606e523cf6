"""A filter of contents met before: it may say yes in error, and then the database is asked."""

from __future__ import annotations

from collections.abc import Iterator

# Ten million contents make it wrong for about one in forty; memory is taken only as it fills.
_BITS = 27
_MASK = 2**_BITS - 1
_PROBES = 4


class ContentFilter:
    """A Bloom filter over content hashes, which are random enough to be their own hashes."""

    def __init__(self) -> None:
        self._bits = bytearray(2**_BITS // 8)

    def add(self, content_hash: bytes) -> None:
        bits = self._bits
        for place in _places(content_hash):
            bits[place >> 3] |= 1 << (place & 7)

    def __contains__(self, content_hash: bytes) -> bool:
        bits = self._bits
        return all(bits[place >> 3] >> (place & 7) & 1 for place in _places(content_hash))


def _places(content_hash: bytes) -> Iterator[int]:
    number = int.from_bytes(content_hash[:16], "big")
    for _ in range(_PROBES):
        yield number & _MASK
        number >>= _BITS
