from __future__ import annotations

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.urls import (
    MAX_URL_LENGTH,
    LinkResolver,
    NormalizedUrl,
    Refusal,
    explain_normalization,
    join,
    normalize,
    with_scheme,
)

BASE = "https://docs.example.org/guide/intro.html?lang=en"

# text that is likely to be a URL, next to text that is anything
URL_PIECES = (
    "http: https: // / .. . a Ex.org xn-- xn--mnchen-3ya ü 1.2 : 80 @ ? # & = utm_source % %2 %7E"
    " %2e %C3 4 F \\ [::1] ~ - _ ; + ' | 0x7f user"
)
url_pieces = st.sampled_from([*URL_PIECES.split(), " ", "\t", "\n", "\0", "\ud800"])
urls = st.one_of(
    st.text(st.characters()),
    st.lists(url_pieces, max_size=12).map("".join),
    st.lists(url_pieces, max_size=12).map(lambda parts: "http://" + "".join(parts)),
)


@pytest.mark.parametrize(
    ("given_url", "expected"),
    [
        ("HTTP://EXAMPLE.org", "http://example.org/"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("http://example.org:443/a", "http://example.org:443/a"),
        ("https://example.org/a/../b/./c", "https://example.org/b/c"),
        ("https://example.org/Path/CASE", "https://example.org/Path/CASE"),
        ("https://example.org/a#part", "https://example.org/a"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("https://example.org/%7euser/%c3%bc", "https://example.org/~user/%C3%BC"),
        ("https://example.org/a%2Fb", "https://example.org/a%2Fb"),
        ("https://example.org/?", "https://example.org/"),
        ("https://example.org/?b=2&a=1&b=1", "https://example.org/?b=2&a=1&b=1"),
        ("https://example.org/?UTM_Source=x&q=1&gclid=2", "https://example.org/?q=1"),
        ("https://example.org/?utm%5Fsource=x", "https://example.org/"),
        ("https://example.org/?ref=a&source=b", "https://example.org/?ref=a&source=b"),
        ("https://user:secret@example.org/@x", "https://example.org/@x"),
        ("https://example.org/a//b/", "https://example.org/a//b/"),
        ("  https://example.org/a\n", "https://example.org/a"),
        ("../x?utm_medium=1", "https://docs.example.org/x"),
        ("?page=2", "https://docs.example.org/guide/intro.html?page=2"),
        ("//cdn.example.org/x", "https://cdn.example.org/x"),
        ("\ud800", "https://docs.example.org/guide/%EF%BF%BD"),
    ],
)
def test_normalises(given_url: str, expected: str) -> None:
    assert normalize(given_url, BASE) == expected


@pytest.mark.parametrize(
    ("given_url", "refusal"),
    [
        ("mailto:someone@example.org", Refusal.SCHEME),
        ("javascript:void(0)", Refusal.SCHEME),
        ("ftp://example.org/", Refusal.SCHEME),
        ("data:text/plain," + "x" * 100_000, Refusal.SCHEME),
        ("http://", Refusal.INVALID),
        ("http://exa mple.org/", Refusal.INVALID),
        ("relative/path", Refusal.INVALID),
        ("https://example.org/" + "a" * MAX_URL_LENGTH, Refusal.TOO_LONG),
        ("https://example.org/" + "a" * 100_000, Refusal.TOO_LONG),
    ],
)
def test_refuses_and_says_why(given_url: str, refusal: Refusal) -> None:
    assert normalize(given_url) is refusal


def test_a_stray_percent_sign_does_not_become_an_escape() -> None:
    assert normalize("http://a.org/%2%45") == "http://a.org/%2%45"
    assert normalize("http://a.org/%%34%31") == "http://a.org/%%341"


@given(urls, st.sampled_from([None, BASE, "http://[::1]:8080/a;b/%7Ec/?q"]))
def test_normalising_twice_changes_nothing(url: str, base: str | None) -> None:
    once = normalize(url, base)
    if not isinstance(once, Refusal):
        assert normalize(once) == once
        assert len(once) <= MAX_URL_LENGTH
        once.encode("ascii")


@given(urls)
def test_join_agrees_with_the_parser(url: str) -> None:
    if ada_url.URL.can_parse(url, BASE):
        assert join(url, BASE) == ada_url.URL(url, BASE).href


@given(urls, st.sampled_from([BASE, "https://a.org/", "http://a.org:8080/x/~y/z"]))
def test_the_resolver_agrees_with_normalise(url: str, base: str) -> None:
    assert LinkResolver(NormalizedUrl(base)).resolve(url) == normalize(url, base)


simple_links = st.from_regex(
    r"\A(https?://[a-z0-9.-]{1,12}/|/)?([A-Z0-9_.~-]{0,4}/){0,4}[A-Za-z0-9_.~-]{0,6}(#[a-z ]*)?\Z"
)


@given(simple_links)
def test_the_resolver_agrees_with_normalise_on_simple_links(url: str) -> None:
    assert LinkResolver(NormalizedUrl(BASE)).resolve(url) == normalize(url, BASE)


@given(urls, st.one_of(st.none(), urls))
def test_explaining_ends_with_the_result(url: str, base: str | None) -> None:
    result = normalize(url, base)
    said = explain_normalization(url, base)[-1]
    expected = f"refused: {result.value}" if isinstance(result, Refusal) else f"result: {result}"
    assert said == expected


def test_explains_every_step() -> None:
    assert explain_normalization("http://u:p@a.org:80/%7ex?utm_id=1&q=2&fbclid=3#top") == [
        "parsed (host, port, dot segments, escapes): "
        "http://u:p@a.org/%7ex?utm_id=1&q=2&fbclid=3#top",
        "fragment dropped: http://u:p@a.org/%7ex?utm_id=1&q=2&fbclid=3",
        "name and password removed: http://a.org/%7ex?utm_id=1&q=2&fbclid=3",
        "escapes in their plain spelling: http://a.org/~x?utm_id=1&q=2&fbclid=3",
        "tracking parameters removed (utm_id, fbclid): http://a.org/~x?q=2",
        "result: http://a.org/~x?q=2",
    ]
    assert explain_normalization("tel:1") == ["refused: neither http nor https"]


@pytest.mark.parametrize("link", ["HTTPS:", "https:", "https:?a=1", "\t?a=1", "", " #x"])
def test_links_that_need_the_whole_page_get_it(link: str) -> None:
    assert LinkResolver(NormalizedUrl(BASE)).resolve(link) == normalize(link, BASE)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("example.org/docs", "https://example.org/docs"),
        ("example.org:443/docs", "https://example.org:443/docs"),
        ("example.org/a:80/b", "https://example.org/a:80/b"),
        ("localhost.example.org", "https://localhost.example.org"),
        ("example.org:8080", "http://example.org:8080"),
        ("127.0.0.1:8310", "http://127.0.0.1:8310"),
        (" 10.0.0.1/x", "http://10.0.0.1/x"),
        ("[::1]:8310/x", "http://[::1]:8310/x"),
        ("localhost", "http://localhost"),
        ("127.0.0.1:443", "https://127.0.0.1:443"),
        ("ftp://127.0.0.1:8310", "ftp://127.0.0.1:8310"),
    ],
)
def test_a_scheme_is_guessed_by_the_host(given: str, expected: str) -> None:
    assert with_scheme(given) == expected
