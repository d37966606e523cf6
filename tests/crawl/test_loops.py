"""What duplicates lead to when all of them are known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forager.crawl.frontier.loops import CANONICAL, REDIRECT, Pointer, resolve


def pointer(key: str, reason: str, target: str, outcome: str | None = "duplicate") -> Pointer:
    return Pointer(key.encode(), reason, target.encode(), outcome)


def test_redirects_that_end_stay_what_they_are() -> None:
    chain = [pointer("a", REDIRECT, "b"), pointer("b", REDIRECT, "c", "failed")]
    assert resolve(chain) == ([], [])
    assert resolve([pointer("a", REDIRECT, "b")]) == ([], [])


def test_redirects_in_a_loop_fail_with_all_that_lead_there() -> None:
    loop = [pointer("a", REDIRECT, "b"), pointer("b", REDIRECT, "a"), pointer("x", REDIRECT, "a")]
    assert resolve(loop) == ([], [b"a", b"b", b"x"])


def test_the_last_page_before_nothing_stands_for_itself() -> None:
    chain = [
        pointer("a", CANONICAL, "b"),
        pointer("b", REDIRECT, "c"),
        pointer("c", CANONICAL, "d", "failed"),
    ]
    assert resolve(chain) == ([b"c"], [])
    into_loop = [pointer("a", CANONICAL, "b"), pointer("b", REDIRECT, "b")]
    assert resolve(into_loop) == ([b"a"], [b"b"])


def test_of_a_ring_of_canonical_urls_one_is_the_page() -> None:
    ring = [pointer("b", CANONICAL, "c"), pointer("c", REDIRECT, "a"), pointer("a", CANONICAL, "b")]
    assert resolve(ring) == ([b"a"], [])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=20), st.booleans())
def test_afterwards_every_canonical_leads_to_a_page(
    given_: list[tuple[bool, int]], dead: bool
) -> None:
    count = len(given_)
    outside = "failed" if dead else "duplicate"
    pointers = [
        pointer(
            str(n), CANONICAL if canonical else REDIRECT, str(target),
            "duplicate" if target < count else outside,
        )
        for n, (canonical, target) in enumerate(given_)
    ]  # fmt: skip
    pages, loops = map(set, resolve(pointers))
    by_key = {p.key: p for p in pointers}
    assert all(by_key[key].reason == CANONICAL for key in pages)
    assert all(by_key[key].reason == REDIRECT for key in loops)
    for start in pointers:
        place, met = start.key, set[bytes]()
        while place in by_key and place not in pages and place not in met:
            met.add(place)
            place = by_key[place].target
        at_page = place in pages or (place not in by_key and not dead)
        assert at_page or start.reason == REDIRECT
        assert (start.key in loops) == (place in met)
