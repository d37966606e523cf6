from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forager.extract.traps import TrapRule, find_trap, path_shape, query_shape, without_session

TODAY = date(2026, 6, 1)
SITE = "https://example.org"


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/a/b/a/b/a/b", TrapRule.REPEATING_PATH),
        ("/x/a/b/c/a/b/c/a/b/c/y", TrapRule.REPEATING_PATH),
        ("/a/a/a/a", TrapRule.REPEATING_PATH),
        ("/en/a/en/b/en/c/en/d/en", TrapRule.REPEATING_PATH),
        ("/" + "/".join(f"s{n}" for n in range(21)), TrapRule.DEEP_PATH),
        ("/shop;jsessionid=1A2B?x=1", TrapRule.SESSION_ID),
        ("/(S(lit3py55t21z5v55vlm25s55))/orders", TrapRule.SESSION_ID),
        ("/?PHPSESSID=abc", TrapRule.SESSION_ID),
        ("/?page=1&sid=9f8e7d6c5b4a39281706abcd", TrapRule.SESSION_ID),
        ("/?" + "&".join(f"p{n}=1" for n in range(17)), TrapRule.MANY_PARAMETERS),
        ("/calendar/2031/05", TrapRule.CALENDAR),
        ("/2031/05/12/", TrapRule.CALENDAR),
        ("/events/2044-05", TrapRule.CALENDAR),
        ("/?date=2031-05-12", TrapRule.CALENDAR),
        ("/?month=5&year=1650", TrapRule.CALENDAR),
    ],
)
def test_traps(path: str, rule: TrapRule) -> None:
    trap = find_trap(SITE + path, TODAY)
    assert trap is not None
    assert trap.rule is rule
    assert trap.detail


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/docs/15/sql-select.html",
        "/api/api/api",
        "/1/1/1/1/1",
        "/a/b/a/b",
        "/?sid=3",
        "/?session=morning",
        "/2026/05/12/news",
        "/archive/1912/04/15",
        "/item/2055/10",
        "/item/3024/1",
        "/?date=2027-01-01",
        "/?q=year=3000x",
    ],
)
def test_ordinary_urls(path: str) -> None:
    assert find_trap(SITE + path, TODAY) is None


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("/a;jsessionid=1?x=1", "/a?x=1"),
        ("/(S(abc))/b", "/b"),
        ("/a?PHPSESSID=1", "/a"),
        ("/a?x=1&sessionid=2&y=3", "/a?x=1&y=3"),
        ("/a?x=1", "/a?x=1"),
    ],
)
def test_session_ids_can_be_removed(path: str, clean: str) -> None:
    assert without_session(SITE + path) == SITE + clean
    assert find_trap(SITE + clean, TODAY) is None


def test_shapes() -> None:
    assert path_shape(f"{SITE}/cal/2026-05-01?x=1") == f"{SITE}/cal/{{date}}"
    assert path_shape(f"{SITE}/a/12/b") == path_shape(f"{SITE}/a/7/b") == f"{SITE}/a/{{number}}/b"
    assert path_shape(f"{SITE}/a/1b2c3d4e5f60718293") == f"{SITE}/a/{{hex}}"
    assert path_shape(f"{SITE}/a/01890a5d-ac96-774b-bcce-b302099a8057") == f"{SITE}/a/{{uuid}}"
    assert query_shape(f"{SITE}/s?b=1&a=2&b=3") == query_shape(f"{SITE}/s?a=9&b=8")
    assert query_shape(f"{SITE}/s?b=1&a=2") == f"{SITE}/s?a&b"
    assert query_shape(f"{SITE}/s") == f"{SITE}/s"


@given(st.text(st.characters()))
def test_nothing_fails_on_any_text(text: str) -> None:
    for url in (text, f"{SITE}/{text}"):
        find_trap(url, TODAY)
        without_session(url)
        path_shape(url)
        query_shape(url)
