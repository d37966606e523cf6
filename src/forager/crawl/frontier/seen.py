"""The set of URLs a crawl knows, as packed 64-bit hashes: about 15 bytes each instead of 93.

Two URLs share a 64-bit hash once in 370,000 crawls of ten million URLs (n^2 / 2^65 = 2.7e-6).
The one that came second would then be taken for known and not be crawled; nothing else happens,
since the database's keys are 128 bits wide. That is rarer than a memory error, and accepted.

Plain Python on purpose: for the hundred links of a page a vectorised table measured no faster,
because most of its time goes into turning those hundred numbers into an array and back.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

# Many small tables grow one at a time: none holds the crawl up for more than a few milliseconds,
# and old and new copy together never exceed the total by more than one part in a thousand.
_SHARDS = 1024
_SHARD_BITS = 10
_SMALLEST = 8
# a small set has few tables, so that a thousand small crawls fit into one process
_FEW_SHARDS = 16
_MOST_IN_FEW = 1024  # slots of one of them
_EMPTY = 0


class SeenSet:
    """Fingerprints of known URLs (unsigned, 64 bits). There is no way to forget one."""

    __slots__ = ("_counts", "_has_zero", "_mask", "_tables")

    def __init__(self, capacity: int = 0) -> None:
        """Make room for `capacity` hashes at once, which saves growing while a crawl resumes."""
        shards = _SHARDS if capacity > _FEW_SHARDS * _MOST_IN_FEW // 2 else _FEW_SHARDS
        # a little more than the average, because hashes do not spread quite evenly
        slots = max(_SMALLEST, int(capacity / shards * 1.04) * 3 // 2)
        self._mask = shards - 1
        self._tables = [_table(slots) for _ in range(shards)]
        self._counts = [0] * shards
        self._has_zero = False

    def __len__(self) -> int:
        return sum(self._counts) + self._has_zero

    def __contains__(self, fingerprint: int) -> bool:
        if fingerprint == _EMPTY:
            return self._has_zero
        table = self._tables[fingerprint & self._mask]
        size = len(table)
        slot = (fingerprint >> _SHARD_BITS) % size
        while (found := table[slot]) != fingerprint:
            if found == _EMPTY:
                return False
            slot = slot + 1 if slot + 1 < size else 0
        return True

    @property
    def nbytes(self) -> int:
        """Memory taken by the tables."""
        return sum(len(table) * table.itemsize for table in self._tables)

    def add(self, fingerprint: int) -> bool:
        """Whether it was new."""
        return self.add_many((fingerprint,))[0]

    def add_many(self, fingerprints: Iterable[int]) -> list[bool]:
        """Which of them were new; one that comes twice is new the first time only."""
        # One long loop with local names: a call for each hash would double its cost.
        tables, counts, mask = self._tables, self._counts, self._mask
        new: list[bool] = []
        for fingerprint in fingerprints:
            shard = fingerprint & mask
            table = tables[shard]
            size = len(table)
            slot = (fingerprint >> _SHARD_BITS) % size
            while (found := table[slot]) != fingerprint:
                if not found:
                    table[slot] = fingerprint
                    counts[shard] = count = counts[shard] + 1
                    if 3 * count > 2 * size:
                        if size > _MOST_IN_FEW and len(tables) == _FEW_SHARDS:
                            self._spread()
                            tables, counts, mask = self._tables, self._counts, self._mask
                        else:
                            tables[shard] = _grown(table)
                    new.append(True)
                    break
                slot = slot + 1 if slot + 1 < size else 0
            else:
                new.append(not fingerprint and self._add_zero())
        return new

    def _spread(self) -> None:
        """Move everything into many tables."""
        larger = SeenSet(2 * _FEW_SHARDS * _MOST_IN_FEW)
        for table in self._tables:
            larger.add_many(filter(None, table))
        self._tables, self._counts, self._mask = larger._tables, larger._counts, larger._mask

    def _add_zero(self) -> bool:
        # zero marks an empty slot, so the hash zero is stored separately
        was_known, self._has_zero = self._has_zero, True
        return not was_known


def _table(slots: int) -> array[int]:
    return array("Q", bytes(8 * slots))


def _grown(old: array[int]) -> array[int]:
    """Half as large again rather than twice: the load stays between 4/9 and 2/3."""
    size = len(old) * 3 // 2
    table = _table(size)
    for fingerprint in filter(None, old):
        slot = (fingerprint >> _SHARD_BITS) % size
        while table[slot]:
            slot = slot + 1 if slot + 1 < size else 0
        table[slot] = fingerprint
    return table
