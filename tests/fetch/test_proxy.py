from __future__ import annotations

import pytest

from forager.errors import InvalidInput
from forager.fetch.proxies.proxy import ProxyScheme, ProxySpec


def test_reads_every_part() -> None:
    spec = ProxySpec.parse("socks5://ann:p%40ss@proxy.example:9050")
    assert spec == ProxySpec(ProxyScheme.SOCKS5, "proxy.example", 9050, "ann", "p@ss")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("proxy.example:3128", "http://proxy.example:3128"),
        ("https://proxy.example", "https://proxy.example:443"),
        ("socks5h://proxy.example", "socks5://proxy.example:1080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://0x7f.1:8080", "http://127.0.0.1:8080"),
    ],
)
def test_fills_in_what_is_missing(text: str, address: str) -> None:
    assert ProxySpec.parse(text).address == address


@pytest.mark.parametrize("text", ["ftp://h:1", "http://", "http://h:99999", "http://u:secret@:1"])
def test_refuses_nonsense_without_showing_the_password(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ProxySpec.parse(text)
    assert "secret" not in str(caught.value)


def test_the_password_is_not_shown() -> None:
    spec = ProxySpec.parse("http://ann:secret@h:1")
    assert "secret" not in repr(spec)
    assert "secret" not in spec.address
