"""SimHash: texts that differ little have hashes that differ little."""

from __future__ import annotations

import random

from forager.crawl.extraction.simhash import simhash

WORDS = [f"{letter}word{number}" for number in range(200) for letter in "abcdeprst"]


def text(seed: int, words: int = 1000) -> list[str]:
    return random.Random(seed).choices(WORDS, k=words)


def hash_of(words: list[str]) -> int:
    found = simhash(" ".join(words))
    assert found is not None
    return found


def distance(one: int, other: int) -> int:
    """In how many bits two hashes differ."""
    return ((one ^ other) % 2**64).bit_count()


def test_a_few_other_words_change_few_bits_and_other_texts_many() -> None:
    for seed in range(20):
        words = text(seed)
        assert distance(hash_of(words), hash_of([*words[:500], "new", *words[500:]])) <= 6
        assert distance(hash_of(words), hash_of(text(seed + 1000))) > 12


def test_a_hash_fits_a_bigint_and_case_and_lines_do_not_matter() -> None:
    hashes = {hash_of(text(seed)) for seed in range(50)}
    assert all(-(2**63) <= each < 2**63 for each in hashes)
    assert min(hashes) < 0 < max(hashes)
    words = text(1)
    assert simhash("\n".join(words).upper()) == hash_of(words)


def test_short_texts_are_not_compared() -> None:
    assert simhash("") is None
    assert simhash("only a few words") is None
    assert simhash("\ud800 " * 500) is None
