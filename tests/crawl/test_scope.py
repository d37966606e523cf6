from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.crawl.frontier.scope import CrawlScope, ScopeMode, ScopeReason, ScopeRule
from forager.errors import InvalidInput
from forager.extract.urls import NormalizedUrl, Refusal, normalize

START = "https://docs.example.org/manual/intro.html"


def url(text: str) -> NormalizedUrl:
    result = normalize(text, START)
    assert not isinstance(result, Refusal)
    return result


def classify(scope: CrawlScope, text: str, depth: int = 1) -> ScopeReason | None:
    rule = scope.refusal(url(text), depth)
    return rule.reason if rule else None


def scope(
    mode: ScopeMode = ScopeMode.HOST, *seeds: str, include: str = "", exclude: str = ""
) -> CrawlScope:
    return CrawlScope(
        [url(seed) for seed in seeds or (START,)],
        mode,
        include=include.split(),
        exclude=exclude.split(),
    )


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("/", None),
        ("http://docs.example.org/x", None),
        ("https://www.docs.example.org/x", None),
        ("https://docs.example.org:8443/x", ScopeReason.OTHER_HOST),
        ("https://example.org/", ScopeReason.OTHER_HOST),
        ("https://docs.example.org.evil.example/", ScopeReason.OTHER_HOST),
        ("https://evil.example/https://docs.example.org/", ScopeReason.OTHER_HOST),
    ],
)
def test_host(link: str, reason: ScopeReason | None) -> None:
    assert classify(scope(), link) is reason


def test_a_start_with_www_means_the_host_without_it_too() -> None:
    assert (
        classify(scope(ScopeMode.HOST, "https://www.example.org/"), "https://example.org/x") is None
    )


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("https://example.org/", None),
        ("https://a.b.example.org:8443/", None),
        ("https://example.com/", ScopeReason.OTHER_DOMAIN),
        ("https://notexample.org/", ScopeReason.OTHER_DOMAIN),
        ("http://192.0.2.1/", ScopeReason.OTHER_DOMAIN),
    ],
)
def test_domain(link: str, reason: ScopeReason | None) -> None:
    assert classify(scope(ScopeMode.DOMAIN), link) is reason


@pytest.mark.parametrize(
    ("start", "link", "inside"),
    [
        (START, "/manual/", True),
        (START, "/manual", True),
        (START, "/manual?x=/", True),
        (START, "/manual/deep/er.html?q", True),
        (START, "/manuals/", False),
        (START, "/Manual/", False),
        (START, "/", False),
        ("/manual", "/manual/x", True),
        ("/manual", "/manual", True),
        ("/manual", "/manual-2", False),
        ("/manual/", "/manual/x", True),
        ("/3.11", "/3.11/x", True),
        ("/3.11", "/3.12/x", False),
        ("/manual/?page=1", "/manual/x", True),
        ("/", "/anything", True),
        ("https://docs.example.org", "/anything", True),
    ],
)
def test_prefix(start: str, link: str, inside: bool) -> None:
    expected = None if inside else ScopeReason.OTHER_PREFIX
    assert classify(scope(ScopeMode.PREFIX, start), link) is expected


def test_prefixes_belong_to_their_hosts() -> None:
    both = scope(ScopeMode.PREFIX, "https://a.example/x/", "https://b.example/y/")
    assert classify(both, "https://a.example/x/1") is None
    assert classify(both, "https://b.example/y/1") is None
    assert classify(both, "https://a.example/y/1") is ScopeReason.OTHER_PREFIX
    assert classify(both, "https://c.example/x/1") is ScopeReason.OTHER_HOST


def test_out_of_scope_is_not_excluded() -> None:
    other = url("https://other.example/")
    rule = ScopeRule(ScopeReason.OTHER_HOST, "other.example is another host")
    assert scope().outside(other) == scope().refusal(other) == rule


@pytest.mark.parametrize(
    ("pattern", "link", "matches"),
    [
        ("/blog/*", "/blog/1", True),
        ("/blog/*", "/blog/", True),
        ("/blog/*", "/blog", False),
        ("/blog", "/blog/1", False),
        ("/blog/", "/blog/", True),
        ("/blog/", "/blog/2024/1?page=2", True),
        ("/blog/", "/other/blog/1", False),
        ("/", "/", True),
        ("/", "/blog/1", False),
        ("*/", "/blog/", True),
        ("*/", "/blog/1", False),
        ("*.pdf", "/a/b.pdf", True),
        ("*.pdf", "/a/b.pdf?x", False),
        ("*?sort=*", "/list?sort=up", True),
        ("*?sort=*", "/listXsort=up", False),
        ("/a[b]", "/ab", False),
        ("https://docs.example.org/a*", "/abc", True),
        ("https://docs.example.org/a*", "http://docs.example.org/abc", False),
        (r"re:/\d{4}/", "/blog/2024/x", True),
        (r"re:^https://docs\.example\.org/$", "/", True),
        (r"re:/\d{4}/", "/blog/99/x", False),
    ],
)
def test_patterns(pattern: str, link: str, matches: bool) -> None:
    excluded = classify(scope(exclude=pattern), link)
    assert excluded is (ScopeReason.EXCLUDE if matches else None)
    included = classify(scope(include=pattern), link)
    assert included is (None if matches else ScopeReason.INCLUDE)


def test_exclude_beats_include_and_names_itself() -> None:
    both = scope(include="/blog/*", exclude="/none /blog/private/*")
    rule = both.refusal(url("/blog/private/1"))
    assert rule is not None
    assert rule.message == "the exclude pattern /blog/private/* matches"
    assert both.refusal(url("/blog/1")) is None


def test_the_start_is_always_crawled() -> None:
    assert scope(include="/blog/*", exclude="*").refusal(url(START)) is None


@pytest.mark.parametrize("pattern", ["blog", "re:(", "re:a{99999}", "x" * 3000])
def test_a_pattern_that_cannot_work_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        scope(exclude=pattern)


@pytest.mark.parametrize("expression", [r"(?=x)", r"(?<!x)y", r"(x)\1", r"(?>x)", "x++"])
def test_syntax_that_needs_backtracking_is_refused_by_name(expression: str) -> None:
    with pytest.raises(InvalidInput, match="no look-around and no backreferences"):
        scope(exclude=f"re:{expression}")


def test_an_expression_too_large_for_its_memory_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too large"):
        scope(exclude="re:" + "(a{99}b{99}){9}" * 100)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("expression", ["/(a+)+$", "/(a|a)*$", "/(.*a){25}$", "(a*)*b$"])
def test_no_expression_takes_exponential_time(expression: str) -> None:
    assert classify(scope(exclude=f"re:{expression}"), "/" + "a" * 1500 + "!") is None


def test_an_empty_pattern_and_no_start_are_refused() -> None:
    with pytest.raises(InvalidInput):
        CrawlScope([url(START)], include=[""])
    with pytest.raises(InvalidInput):
        CrawlScope([])


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("/logo.PNG", ScopeReason.TYPE),
        ("/app.min.js?v=3", ScopeReason.TYPE),
        ("/download.tar.gz", ScopeReason.TYPE),
        ("/a.png/", None),
        ("/show?file=a.png", None),
        ("/png", None),
        ("/manual.pdf", None),
        ("/index.html", None),
    ],
)
def test_files_that_are_no_pages(link: str, reason: ScopeReason | None) -> None:
    assert classify(scope(), link) is reason


def test_depth() -> None:
    limited = CrawlScope([url(START)], max_depth=2)
    assert classify(limited, "/x", 2) is None
    assert classify(limited, "/x", 3) is ScopeReason.DEPTH
    assert classify(CrawlScope([url(START)], max_depth=0), START, 5) is None


@given(st.text(max_size=60), st.sampled_from(ScopeMode), st.integers(0, 10))
def test_only_urls_in_scope_are_crawled(link: str, mode: ScopeMode, depth: int) -> None:
    found = normalize(link, START)
    if not isinstance(found, Refusal):
        limits = scope(mode, include="/a* *b", exclude="*c*")
        rule = limits.refusal(found, depth)
        assert limits.outside(found) is None or limits.outside(found) == rule
