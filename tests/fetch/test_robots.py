from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.wildcard import Wildcard
from forager.fetch.robots.rules import (
    MAX_CRAWL_DELAY,
    SIZE_LIMIT,
    Robots,
    RuleVerdict,
    parse_robots,
    product_token,
)

HOST = "https://shop.example"


def allowed(text: str, path: str, agent: str = "Forager") -> bool:
    return parse_robots(text.encode()).verdict(HOST + path, agent).allowed


def test_an_empty_file_allows_everything() -> None:
    assert parse_robots(b"").verdict(HOST, "Forager") == RuleVerdict(True)


def test_the_verdict_names_rule_and_line() -> None:
    robots = parse_robots(b"# rules\r\nUser-agent: *\r\rDisallow: /private # secret\nAllow: /p\n")
    assert robots.verdict(f"{HOST}/private/x", "Forager") == RuleVerdict(
        False, "Disallow: /private", 4
    )
    assert robots.verdict(f"{HOST}/page", "Forager") == RuleVerdict(True, "Allow: /p", 5)
    assert robots.verdict(f"{HOST}/other", "Forager") == RuleVerdict(True)


def test_the_longest_rule_decides_and_allow_wins_a_tie() -> None:
    text = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /a/b/c\n"
    assert not allowed(text, "/a/x")
    assert allowed(text, "/a/b/x")
    assert allowed(text, "/a/b/c")


def test_groups_that_name_an_agent_twice_are_merged() -> None:
    text = "User-agent: forager\nDisallow: /a\n\nUser-agent: FORAGER\nDisallow: /b\n"
    assert not allowed(text, "/a")
    assert not allowed(text, "/b")


def test_a_named_group_replaces_the_general_one_even_if_it_says_nothing() -> None:
    text = "User-agent: *\nDisallow: /\nUser-agent: forager\nDisallow:\n"
    assert allowed(text, "/x")
    assert not allowed(text, "/x", "other")


def test_other_lines_do_not_end_a_list_of_agents() -> None:
    text = "User-agent: forager\nSitemap: https://x/\nNonsense: 1\nUser-agent: *\nDisallow: /\n"
    assert not allowed(text, "/x")


def test_an_agent_is_cut_at_its_first_space_or_slash() -> None:
    assert not allowed("User-agent: Forager the crawler\nDisallow: /\n", "/x")
    assert not allowed("User-agent: Forager/1.0\nDisallow: /\n", "/x")
    assert allowed("User-agent: Forage\nDisallow: /\n", "/x")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Forager", "Forager"),
        ("Forager/1.0 (+https://forager.example/bot)", "Forager"),
        ("Mozilla/5.0 (compatible; Forager/1.0; +https://forager.example)", "Forager"),
        ("Bot42/2", "Bot42"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_product_token(header: str, token: str) -> None:
    assert product_token(header) == token


def test_a_whole_header_finds_its_group() -> None:
    assert not allowed("User-agent: forager\nDisallow: /x\n", "/x", "Forager/1.0 (+https://f/)")


def test_wildcards_and_anchors() -> None:
    text = "User-agent: *\nDisallow: /*.php$\nDisallow: /a**b\nDisallow: /cost$s\n"
    assert not allowed(text, "/x/y.php")
    assert allowed(text, "/x/y.php?z")
    assert not allowed(text, "/a---b--")
    assert not allowed(text, "/cost$s")


def test_escapes_in_either_case_and_raw_bytes_are_the_same_rule() -> None:
    for rule in ("/caf%c3%a9", "/caf%C3%A9", "/café"):
        assert not allowed(f"User-agent: *\nDisallow: {rule}\n", "/caf%C3%A9")
    latin = parse_robots("User-agent: *\nDisallow: /café\n".encode("latin-1"))
    assert not latin.verdict(f"{HOST}/caf%E9", "Forager").allowed


def test_escaped_letters_cannot_get_around_a_rule() -> None:
    assert not allowed("User-agent: *\nDisallow: /private\n", "/%70rivate")
    assert not allowed("User-agent: *\nDisallow: /%70rivate\n", "/private")
    assert allowed("User-agent: *\nDisallow: /a/b\n", "/a%2Fb")


def test_a_star_can_be_meant_literally() -> None:
    text = "User-agent: *\nDisallow: /a%2Ab\n"
    assert not allowed(text, "/a*b")
    assert allowed(text, "/axb")


def test_the_query_counts_and_the_fragment_does_not() -> None:
    text = "User-agent: *\nDisallow: /*?sort=\n"
    assert not allowed(text, "/list?sort=price")
    assert not allowed(text, "?sort=price")
    assert allowed(text, "/list#?sort=")


def test_robots_txt_itself_is_always_allowed() -> None:
    assert allowed("User-agent: *\nDisallow: /\n", "/robots.txt")


def test_an_allowed_index_page_allows_its_folder() -> None:
    text = "User-agent: *\nDisallow: /\nAllow: /docs/index.html\n"
    assert allowed(text, "/docs/")
    assert not allowed(text, "/docs/other")
    assert not allowed("User-agent: *\nDisallow: /\nAllow: /docs/index.html-old\n", "/docs/")


def test_crawl_delay() -> None:
    robots = parse_robots(
        b"User-agent: slow\nCrawl-delay: 10\nUser-agent: *\nCrawl-delay: 0.5\nDisallow: /x\n"
    )
    assert robots.crawl_delay("Forager") == 0.5
    assert robots.crawl_delay("slow") == 10.0
    assert parse_robots(b"User-agent: other\nCrawl-delay: 1\n").crawl_delay("Forager") is None


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e9", "soon", "1 2", "\xb2"])
def test_a_delay_that_is_not_a_number_is_ignored_and_reported(value: str) -> None:
    robots = parse_robots(f"User-agent: *\nCrawl-delay: {value}\n".encode("latin-1"))
    assert robots.crawl_delay("Forager") is None
    assert "line 2" in robots.notes[0]


def test_an_absurd_delay_is_capped_and_reported() -> None:
    robots = parse_robots(b"User-agent: *\nCrawl-delay: " + b"9" * 500)
    assert robots.crawl_delay("Forager") == MAX_CRAWL_DELAY
    assert "lowered" in robots.notes[0]


def test_sitemaps_belong_to_no_group_and_come_once() -> None:
    robots = parse_robots("Sitemap: https://x/ü.xml\nsite-map:/b.xml\nSitemap: /b.xml\n".encode())
    assert robots.sitemaps == ["https://x/ü.xml", "/b.xml"]


def test_a_file_that_is_too_large_is_cut_at_a_line_end_and_reported() -> None:
    head = b"User-agent: *\nDisallow: /a\n"
    filler = b"#" * (SIZE_LIMIT - len(head) - 12) + b"\n"
    robots = parse_robots(head + filler + b"Disallow: /long/path\n")
    assert robots.notes == ("only the first 500 KiB were read",)
    assert not robots.verdict(f"{HOST}/a", "Forager").allowed
    # the last line straddles the limit: half of it would forbid everything
    assert robots.verdict(f"{HOST}/b", "Forager").allowed


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_marks_and_nuls_do_not_hide_the_first_line(encoding: str) -> None:
    robots = parse_robots("User-agent: *\nDisallow: /a\n".encode(encoding))
    assert not robots.verdict(f"{HOST}/a", "Forager").allowed
    assert robots.verdict(f"{HOST}/b", "Forager").allowed


def test_rules_before_any_agent_are_ignored() -> None:
    assert allowed("Disallow: /\n", "/x")


def test_a_hostile_pattern_costs_no_more_than_its_length() -> None:
    # with backtracking this would not end in the lifetime of the universe
    pattern = "/" + "*a" * 8000 + "b"
    assert allowed(f"User-agent: *\nDisallow: {pattern}\n", "/" + "a" * 8000)


def test_many_agents_with_many_rules_cost_their_sum_not_their_product() -> None:
    agents = "".join(f"User-agent: a{n}\n" for n in range(15_000))
    rules = "".join(f"Disallow: /{n}\nCrawl-delay: 1\n" for n in range(7_000))
    robots = parse_robots((agents + rules).encode())
    assert robots.crawl_delay("a14999") == 1.0
    assert not robots.verdict(f"{HOST}/6999", "a0").allowed


@given(st.binary(max_size=2000), st.text(max_size=50), st.text(max_size=20))
def test_no_body_url_or_agent_raises(body: bytes, url: str, agent: str) -> None:
    robots = parse_robots(b"User-agent: *\n" + body)
    assert isinstance(robots, Robots)
    robots.verdict(url, agent)
    robots.crawl_delay(agent)


@given(
    st.lists(
        st.sampled_from(
            [
                "User-agent: *",
                "User-agent: a",
                "Allow: /",
                "Disallow: /a*",
                "Crawl-delay: 1",
                "x",
                "",
            ]
        )
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_line_ends_make_no_difference(lines: list[str], end: str) -> None:
    expected = parse_robots("\n".join(lines).encode())
    actual = parse_robots(end.join(lines).encode())
    for url, agent in product(("/", "/a", "/ab"), ("a", "b")):
        assert actual.verdict(url, agent) == expected.verdict(url, agent)


def slow_match(pattern: str, text: str) -> bool:
    """What a wildcard means, by definition: exponential, and plainly right."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(slow_match(pattern[1:], text[n:]) for n in range(len(text) + 1))
    return text[:1] == pattern[0] and slow_match(pattern[1:], text[1:])


@given(st.text("ab*", max_size=7), st.text("ab", max_size=8), st.booleans())
def test_wildcards_match_what_they_mean(pattern: str, text: str, anchored: bool) -> None:
    expected = slow_match(pattern if anchored else f"{pattern}*", text)
    assert Wildcard.compile(pattern, anchored=anchored).matches(text) is expected
