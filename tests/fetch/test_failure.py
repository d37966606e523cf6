from __future__ import annotations

import asyncio
import ssl

import aiohttp
import pytest

from forager.errors import (
    ErrorKind,
    GiveUp,
    Retry,
    RotateProxy,
    SlowDown,
    WorkFailed,
    error_text,
    error_with_type,
)
from forager.fetch.failure import classify, classify_status
from forager.fetch.response import ResponseLimits


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
    assert classify(first, ResponseLimits(), None) is first


def test_the_unexpected_is_still_a_failure_of_this_url() -> None:
    failure = classify(RuntimeError("odd"), ResponseLimits(), None)
    assert type(failure) is Retry
    assert failure.kind is ErrorKind.INTERNAL


async def _message(url: str) -> str:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError) as caught:
            await session.get(url)
    return classify(caught.value, ResponseLimits(), None).message


@pytest.mark.parametrize("host", ["127.0.0.77", "[::1]", "localhost"])
async def test_a_refused_connection_is_reported_in_words(host: str) -> None:
    assert await _message(f"http://{host}:9/") == "no connection: Connection refused"


async def test_an_unknown_name_is_reported_in_words() -> None:
    message = await _message("http://nowhere.invalid/")
    assert message.startswith("the name cannot be resolved: ")
    assert "[" not in message


async def test_answers_other_than_http_and_tls_are_reported_in_words() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"junk\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert (
            await _message(f"http://127.0.0.1:{port}/") == "the answer is not HTTP: Bad status line"
        )
        encrypted = await _message(f"https://127.0.0.1:{port}/")
    assert encrypted == "the TLS handshake failed: wrong version number"


def test_text_of_an_exception_has_no_notation_of_python() -> None:
    several = OSError(
        "Multiple exceptions: [Errno 111] Connect call failed ('::1', 9, 0, 0),"
        " [Errno 111] Connect call failed ('127.0.0.1', 9)"
    )
    assert error_text(several) == ("Multiple exceptions: Connection refused, Connection refused")
    assert error_text(RuntimeError(f"{object()} is closed")) == "is closed"
    assert error_text(FileNotFoundError(2, "No such file or directory", "a.txt")) == (
        "No such file or directory: a.txt"
    )
    assert error_text(KeyError("name")) == "name is missing"
    with pytest.raises(UnicodeDecodeError) as broken:
        b"ab\xff".decode()
    assert error_text(broken.value) == "the text is not valid utf-8 at byte 2"
    group = ExceptionGroup("unhandled errors", [ValueError("too long"), GiveUp("not found")])
    assert error_text(group) == "too long; not found"
    assert error_text(ssl.SSLError(1, "[SSL] record layer failure (_ssl.c:2)")) != ""
    assert error_text(TimeoutError()) == error_with_type(TimeoutError()) == "TimeoutError"
    assert error_with_type(KeyError("name")) == "KeyError: 'name'"
