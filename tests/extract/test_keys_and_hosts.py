from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.hosts import host_name, host_of, registrable_domain
from forager.extract.keys import key_fingerprint, url_hash, url_key


def test_the_key_is_the_start_of_the_hash() -> None:
    url = "https://example.org/"
    assert url_hash(url) == sha256(url.encode()).digest()
    assert url_key(url) == url_hash(url)[:16]


@given(st.text(st.characters()))
def test_a_fingerprint_can_be_had_from_the_stored_key(url: str) -> None:
    assert key_fingerprint(url_key(url)) == int.from_bytes(url_hash(url)[:8], "big")


@pytest.mark.parametrize(
    ("url", "host", "name"),
    [
        ("https://example.org/a/b", "example.org", "example.org"),
        ("http://example.org:8080/?q=//x", "example.org:8080", "example.org"),
        ("http://[::1]/", "[::1]", "[::1]"),
        ("http://[::1]:81/", "[::1]:81", "[::1]"),
    ],
)
def test_hosts(url: str, host: str, name: str) -> None:
    assert host_of(url) == host
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("docs.example.org", "example.org"),
        ("a.b.example.co.uk:8080", "example.co.uk"),
        ("project.github.io", "project.github.io"),
        ("www.xn--bcher-kva.de", "xn--bcher-kva.de"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[::1]:8000", "[::1]"),
        ("localhost", "localhost"),
        ("co.uk", "co.uk"),
    ],
)
def test_registrable_domains(host: str, domain: str) -> None:
    assert registrable_domain(host) == domain


def test_which_hosts_share_a_domain() -> None:
    def same_domain(host: str, other: str) -> bool:
        return registrable_domain(host) == registrable_domain(other)

    assert same_domain("docs.example.org", "www.example.org:8080")
    assert not same_domain("one.github.io", "two.github.io")
    assert not same_domain("127.0.0.1", "126.0.0.1")


@given(st.text(st.characters()))
def test_hosts_never_fail(text: str) -> None:
    registrable_domain(host_of(text))
