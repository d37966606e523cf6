from __future__ import annotations

import pytest

from forager.errors import ErrorKind, GiveUp, Retry, RotateProxy, SlowDown, WorkFailed
from forager.fetch.failure import classify, classify_status
from forager.fetch.response import Limits


@pytest.mark.parametrize("status", [200, 204, 206, 301, 304, 308])
def test_usable_statuses_are_no_failure(status: int) -> None:
    assert classify_status(status, {}) is None


@pytest.mark.parametrize(
    ("status", "expected", "kind"),
    [
        (400, GiveUp, ErrorKind.HTTP_CLIENT),
        (403, GiveUp, ErrorKind.HTTP_CLIENT),
        (404, GiveUp, ErrorKind.HTTP_CLIENT),
        (410, GiveUp, ErrorKind.HTTP_CLIENT),
        (407, RotateProxy, ErrorKind.HTTP_CLIENT),
        (408, Retry, ErrorKind.HTTP_CLIENT),
        (425, Retry, ErrorKind.HTTP_CLIENT),
        (429, SlowDown, ErrorKind.HTTP_CLIENT),
        (500, Retry, ErrorKind.HTTP_SERVER),
        (503, SlowDown, ErrorKind.HTTP_SERVER),
        (599, Retry, ErrorKind.HTTP_SERVER),
    ],
)
def test_statuses_say_what_to_do(status: int, expected: type[WorkFailed], kind: ErrorKind) -> None:
    failure = classify_status(status, {})
    assert type(failure) is expected
    assert failure.kind is kind
    assert str(status) in failure.message


def test_slow_down_carries_the_time() -> None:
    failure = classify_status(429, {"Retry-After": "120"})
    assert isinstance(failure, SlowDown)
    assert failure.retry_after == 120


def test_a_failure_is_classified_once() -> None:
    first = GiveUp("no", kind=ErrorKind.NOT_ALLOWED)
    assert classify(first, Limits(), None) is first


def test_the_unexpected_is_still_a_failure_of_this_url() -> None:
    failure = classify(RuntimeError("odd"), Limits(), None)
    assert type(failure) is Retry
    assert failure.kind is ErrorKind.INTERNAL
