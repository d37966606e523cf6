"""What is learned about the pages of a source, and which browser is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from forager.errors import ForagerError
from forager.render.browser import ResourceRequest
from forager.render.finding import browser_path, find_browser
from forager.render.resources import refusal
from forager.render.stats import RECHECK_EVERY, RenderStats, shape_of, template_of
from forager.settings import Settings

PAGE = "https://shop.example/item/17"


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("https://a.example/", "a.example/"),
        ("https://a.example/guide/install", "a.example/guide/*"),
        ("https://a.example/v1.2/guide/install", "a.example/*/guide/*"),
        ("https://a.example/item/17?size=4&color=2", "a.example/item/*?color&size"),
    ],
)
def test_pages_of_one_kind_have_one_shape(url: str, shape: str) -> None:
    assert shape_of(url) == shape


def test_a_shape_that_gains_nothing_is_left_alone_and_checked_again_now_and_then() -> None:
    stats = RenderStats("shop")
    assert not stats.is_wasted(PAGE)
    stats.learn(PAGE, gained=False)
    assert not stats.is_wasted(PAGE)
    stats.learn(PAGE, gained=False)
    skipped = [stats.is_wasted(PAGE) for _ in range(2 * RECHECK_EVERY)]
    assert skipped.count(False) == 2
    stats.learn(PAGE, gained=True)
    assert stats.gains(PAGE)
    assert not stats.is_wasted(PAGE)


SHELL = b'<body class="docs"><div id="app"></div><script src="%b/js/app.12.js"></script>'


def test_a_template_that_gains_nothing_is_not_tried_in_every_folder() -> None:
    stats = RenderStats("docs")
    template = template_of(SHELL % b"..")
    assert template == template_of((SHELL % b"../..").replace(b"12", b"345"))
    assert template != template_of(b'<div id="other"></div>')
    for folder in ("a", "b"):
        assert not stats.is_wasted(f"https://docs.example/{folder}/x", template)
        stats.learn(f"https://docs.example/{folder}/x", template, gained=False)
    assert stats.is_wasted("https://docs.example/c/x", template)
    assert not stats.is_wasted("https://docs.example/c/x", "another template")
    stats.learn("https://docs.example/c/x", "another template", gained=True)
    assert not stats.is_wasted("https://docs.example/c/y", template)


def test_anchors_of_sections_do_not_make_another_template() -> None:
    page = '<body class="docs"><div id="app"></div>{}<script src="app.js"></script>'
    sections = '<section id="{0}"><div class="section" id="{0}-more"></div></section>'
    first, second = (
        template_of(page.format(sections.format(name)).encode()) for name in ("intro", "usage")
    )
    assert first == second


def test_trackers_and_pictures_are_never_requested() -> None:
    def refused(url: str, kind: str = "script", method: str = "GET") -> str | None:
        request = ResourceRequest(url, method, {}, kind, main=False, body=b"")
        return refusal(request, PAGE, pictures=False)

    assert refused("https://www.google-analytics.com/a.js") == "tracker"
    assert refused("https://shop.example/a.png", "image") == "image"
    assert refused("https://shop.example/a", "fetch", "DELETE") == "method DELETE"
    assert refused("file:///etc/passwd", "document") == "scheme"
    assert refused("https://cdn.example/a.js") is None


def test_a_browser_can_be_named_or_turned_off(tmp_path: Path) -> None:
    with pytest.raises(ForagerError, match="turned off"):
        browser_path(Settings(browser="none"))
    program = tmp_path / "chrome"
    assert find_browser(Settings(browser=str(program))).path is None
    program.touch(mode=0o755)
    assert find_browser(Settings(browser=str(program))).path == str(program)
