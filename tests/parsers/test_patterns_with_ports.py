"""Patterns of parsers that name a port."""

from __future__ import annotations

import pytest

from forager.errors import InvalidInput
from forager.parsers.pattern import UrlPattern


@pytest.mark.parametrize(
    ("pattern", "url", "fits"),
    [
        ("shop.example:8443/item/*", "https://shop.example:8443/item/1", True),
        ("shop.example:8443/item/*", "https://www.shop.example:8443/item/1", True),
        ("shop.example:8443/item/*", "https://shop.example/item/1", False),
        ("shop.example:8443/item/*", "https://shop.example:9443/item/1", False),
        ("shop.example:443/item/*", "https://shop.example/item/1", True),
        ("shop.example:443/item/*", "http://shop.example/item/1", False),
        ("shop.example:80/item/*", "http://shop.example/item/1", True),
        ("127.0.0.1:8080/*", "http://127.0.0.1:8080/any", True),
        ("*:8080/*", "http://any.example:8080/lamp", True),
        ("shop.*:8080/*", "http://shop.de:8080/lamp", True),
        ("shop.*:8080/*", "http://shop.de/lamp", False),
    ],
)
def test_a_port_is_part_of_the_host(pattern: str, url: str, fits: bool) -> None:
    assert UrlPattern.compile(pattern).matches(url) is fits


def test_a_pattern_with_a_port_is_more_specific() -> None:
    plain, ported = map(UrlPattern.compile, ("shop.example/*", "shop.example:8443/*"))
    assert ported.weight > plain.weight


@pytest.mark.parametrize(
    "port", ["", "0", "65536", "99999999", "-1", "8o", "\u0661\u0662", "80:80", "*"]
)
def test_what_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(InvalidInput, match="not a URL pattern"):
        UrlPattern.compile(f"shop.example:{port}/*")
