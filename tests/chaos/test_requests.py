"""How a host judges the requests that it got."""

from __future__ import annotations

import pytest

from chaos.requests import Budget, Served, excess, most_at_once

BUDGET = Budget(delay=0.1, concurrency=2)


def served(*times: float, lasting: float = 0.0) -> list[Served]:
    return [Served("/", "", at, at, at + lasting) for at in times]


def test_requests_in_time() -> None:
    assert excess(served(*(n * 0.1 for n in range(50))), BUDGET) == pytest.approx(0)
    assert excess(served(0, 5, 5.1, 90), BUDGET) == pytest.approx(0)
    assert excess([], BUDGET) == 0


def test_a_burst_after_silence_is_too_many() -> None:
    """A client that sent nothing for long must not catch up."""
    assert excess(served(0, 10, 10, 10, 10), BUDGET) == pytest.approx(3)


def test_a_rate_that_is_a_little_too_high_adds_up() -> None:
    assert excess(served(*(n * 0.09 for n in range(101))), BUDGET) == pytest.approx(10)


def test_a_server_that_did_not_look_cannot_tell() -> None:
    """Three requests that came at any time of the last second, for all it knows."""
    late = [Served("/", "", 0.0, 1.0, 1.0) for _ in range(3)]
    assert excess(late, BUDGET) == 0


def test_requests_at_once() -> None:
    assert most_at_once(served(0, 1, 2, lasting=0.5)) == 1
    assert most_at_once(served(0, 0.1, 0.2, 5, lasting=0.5)) == 3
    assert most_at_once(served(0, 1, lasting=1.0)) == 1
    assert most_at_once([]) == 0
