"""URLs: one spelling for each, found again whatever it is put through."""

from __future__ import annotations

from contextlib import suppress
from datetime import date

from forager.crawl.frontier.scope import CrawlScope, ScopeMode
from forager.errors import InvalidInput
from forager.extract.hosts import host_of, registrable_domain
from forager.extract.keys import key_fingerprint, url_key
from forager.extract.traps import find_trap, path_shape, query_shape, without_session
from forager.extract.urls import (
    MAX_URL_LENGTH,
    LinkResolver,
    NormalizedUrl,
    Refusal,
    explain_normalization,
    normalize,
)
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.response import join_location
from fuzz.target import Target, assert_storable, split_line, text_of

_TODAY = date(2026, 1, 1)
_HOME = NormalizedUrl("https://docs.example.org/guide/page.html")


def check(data: bytes) -> None:
    """A link, and on further lines the page that it stands on."""
    href, rest = map(text_of, split_line(data))
    _check_one(href, None)
    _check_one(href, _HOME)
    page = normalize(rest)
    if not isinstance(page, Refusal):
        _check_one(href, page)
    join_location(_HOME, href)
    with suppress(InvalidInput):
        ProxySpec.parse(href)


def _check_one(href: str, page: NormalizedUrl | None) -> None:
    url = normalize(href, page)
    if page is not None:
        assert LinkResolver(page).resolve(href) == url, "a resolver must agree with a single look"
    said = explain_normalization(href, page)
    if isinstance(url, Refusal):
        assert said[-1] == f"refused: {url.value}"
        return
    assert said[-1] == f"result: {url}"
    _check_normalized(url)


def _check_normalized(url: NormalizedUrl) -> None:
    assert normalize(url) == url, f"normalized twice, {url} is another URL"
    assert url.isascii()
    assert len(url) <= MAX_URL_LENGTH
    assert url.startswith(("http://", "https://"))
    assert "#" not in url
    host = host_of(url)
    assert host
    assert "@" not in host
    assert host == host.lower()
    assert_storable(registrable_domain(host))
    assert 0 <= key_fingerprint(url_key(url)) < 2**64
    find_trap(url, _TODAY)
    assert path_shape(url)
    assert query_shape(query_shape(url)) == query_shape(url)
    _check_session(url)
    for mode in ScopeMode:
        assert CrawlScope([url], mode).refusal(url) is None


def _check_session(url: NormalizedUrl) -> None:
    plain = normalize(without_session(url))
    assert not isinstance(plain, Refusal), "without its session id, a URL is still one"


TARGET = Target(
    check,
    [
        b"https://user:pw@EXAMPLE.org:443/a/../b%7e?utm_source=x&y=1#z",
        b"../x.html?sid=0123456789abcdef0123456789\nhttp://xn--bcher-kva.example/a/b/",
        b"//[::1]:8080/;jsessionid=1/(S(abc))/x",
        b"http://0x7f.1/%%34%31?q=%zz&",
        b"https:page\nhttp://h/",
        b"/2055-01/calendar/2099/1?year=2099\nhttp://h/",
        b"socks5://u:p@h:99",
    ],
    [b"http://", b"https://", b"//", b"/../", b"%2e", b"%25", b"%", b"?", b"#", b"&", b"utm_x=1",
     b"xn--", b"[::1]", b"@", b":80", b"jsessionid=", b";sid=", b"/(S(a))", b"\\", b"\t",
     b"javascript:", b"\xe2\x80\x8b", b"\xc3\x9f", b"0x7f.1"],
)  # fmt: skip
