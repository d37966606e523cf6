"""What fuzzers look for, in every run of the tests: a little of it, and all they ever found."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.target import Target
from fuzz.targets import PLACES, load

CASES = Path(__file__).parent / "cases"
FOUND = sorted(path.relative_to(CASES).as_posix() for path in CASES.glob("*/*"))
EXAMPLES = 60


@pytest.mark.parametrize("case", FOUND)
def test_what_was_found_once_is_not_found_again(case: str) -> None:
    load(Path(case).parent.name).check((CASES / case).read_bytes())


def test_every_case_belongs_to_a_target() -> None:
    assert {Path(case).parent.name for case in FOUND} <= set(PLACES)


def inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Noise, sentences of the target's words, and its examples with a part exchanged."""
    noise = st.binary(max_size=40)
    sentences = st.lists(st.sampled_from(target.words) | noise, max_size=25).map(b"".join)
    places = st.integers(0, 400)
    spoilt = st.builds(
        lambda example, start, length, part: example[:start] + part + example[start + length :],
        st.sampled_from(target.examples),
        places,
        places,
        sentences,
    )
    return st.one_of(st.binary(max_size=300), sentences, spoilt)


@pytest.mark.parametrize("name", PLACES)
def test_promises_hold_for_any_bytes(name: str) -> None:
    target = load(name)
    for given_bytes in (b"", b"\0", b"\n", *target.examples, *target.words):
        target.check(given_bytes)

    # always the same ones: looking for new ones is a fuzzer's work, not that of a test
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs(target))
    def check(data: bytes) -> None:
        target.check(data)

    check()
