from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.crawl.frontier.seen import SeenSet

# few values, so that repeats and zero come up; and values of one shard, so that it has to grow
hashes = st.one_of(
    st.integers(0, 5), st.integers(0, 2**64 - 1), st.integers(0, 2**54 - 1).map(lambda n: n << 10)
)


@given(st.lists(st.lists(hashes, max_size=40), max_size=10), hashes)
def test_it_behaves_like_a_set(batches: list[list[int]], other: int) -> None:
    seen, model = SeenSet(), set[int]()
    for batch in batches:
        expected = []
        for fingerprint in batch:
            expected.append(fingerprint not in model)
            model.add(fingerprint)
        assert seen.add_many(batch) == expected
    assert len(seen) == len(model)
    assert all(fingerprint in seen for fingerprint in model)
    assert (other in seen) is (other in model)


def test_zero_is_a_hash_like_any_other() -> None:
    seen = SeenSet()
    assert 0 not in seen
    assert seen.add_many([0, 0]) == [True, False]
    assert 0 in seen
    assert len(seen) == 1


def test_hashes_that_all_want_one_slot_are_kept_apart() -> None:
    # 2^10 shards; a multiple of every table size that comes up would be cruel, this is enough
    wanted = [n << 40 for n in range(1, 3000)]
    seen = SeenSet()
    assert all(seen.add_many(wanted))
    assert not any(seen.add_many(wanted))


@pytest.mark.parametrize("capacity", [0, 50_000])
def test_memory_per_hash_is_bounded(capacity: int) -> None:
    source = random.Random(1)
    wanted = [source.getrandbits(64) for _ in range(50_000)]
    seen = SeenSet(capacity)
    seen.add_many(wanted)
    assert len(seen) == 50_000
    assert seen.nbytes / len(seen) < 20


def test_a_set_made_large_enough_does_not_grow() -> None:
    source = random.Random(2)
    seen = SeenSet(200_000)
    before = seen.nbytes
    seen.add_many(source.getrandbits(64) for _ in range(200_000))
    assert seen.nbytes < before * 1.2


def test_a_number_that_is_no_hash_is_refused() -> None:
    for wrong in (-1, 2**64):
        with pytest.raises(OverflowError):
            SeenSet().add(wrong)


def test_a_set_that_grows_large_forgets_nothing() -> None:
    source = random.Random(3)
    known = [source.getrandbits(64) for _ in range(60_000)]
    seen = SeenSet()
    small = seen.nbytes
    assert all(seen.add_many(known))
    assert not any(seen.add_many(known))
    assert len(seen) == len(known)
    assert small < 4_096
