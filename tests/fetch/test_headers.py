"""Request headers that users set."""

from __future__ import annotations

import pytest

from forager.crawl.options import crawl_options
from forager.errors import InvalidInput

START = "https://docs.example.org/"


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "hOST", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE"),
        *("Trailer", "Upgrade", "Expect", "Proxy-Authorization", "Proxy-Connection"),
    ],
)
def test_a_header_that_belongs_to_the_connection_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"the header {name} cannot be set"):
        crawl_options({"urls": [START], "headers": {name: "x"}})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host ", "x"),
        ("", "x"),
        ("A:b", "x"),
        ("A\r\nHost", "x"),
        ("A", "x\r\nHost: y"),
        ("A", "\0"),
    ],
)
def test_what_is_no_header_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match="not a header that can be sent"):
        crawl_options({"urls": [START], "headers": {name: value}})


def test_other_headers_are_taken() -> None:
    headers = {"Authorization": "Bearer x", "Cookie": "a=b\tc", "X-Test": "ä"}
    assert crawl_options({"urls": [START], "headers": headers}).headers == headers


@pytest.mark.parametrize("agent", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\x7f"])
def test_a_user_agent_is_a_header_value_too(agent: str) -> None:
    with pytest.raises(InvalidInput, match="line break or another control character"):
        crawl_options({"urls": ["https://a.example/"], "user_agent": agent})
