"""Curves are well-formed pictures that say their numbers in words, too."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.curve import Curve, Line, nice_top, short

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: Line) -> ElementTree.Element:
    return ElementTree.fromstring(Curve("Speed <fast> & slow", "pages", "pages/s", lines).svg())


def test_labels_its_axes_and_names_its_lines() -> None:
    svg = drawn(Line("full job", [(1_000, 280), (100_000, 310)]), Line("archive", [(1_000, 990)]))
    words = [text.text for text in svg.iter(f"{SVG}text")]
    assert {"Speed <fast> & slow", "pages", "pages/s", "full job", "archive"} <= set(words)
    assert {"1k", "100k"} <= set(words)


def test_puts_ten_times_as_much_at_the_same_distance() -> None:
    svg = drawn(Line("a", [(1_000, 1), (10_000, 2), (100_000, 4)]))
    places = [float(dot.attrib["cx"]) for dot in svg.iter(f"{SVG}circle")]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)


def test_higher_is_more_and_inside_of_the_frame() -> None:
    svg = drawn(Line("a", [(1_000, 0), (10_000, 5), (100_000, 10)]))
    heights = [float(dot.attrib["cy"]) for dot in svg.iter(f"{SVG}circle")]
    assert heights == sorted(heights, reverse=True)
    assert 0 < heights[-1] < heights[0] < float(svg.attrib["height"])


def test_says_its_numbers_to_those_who_cannot_see_it() -> None:
    description = drawn(Line("full job", [(1_000, 280.5)])).find(f"{SVG}desc")
    assert description is not None
    assert description.text == "full job: 280.5 at 1,000"


def test_is_for_light_and_for_dark_pages() -> None:
    style = drawn(Line("a", [(1, 1)])).find(f"{SVG}style")
    assert style is not None
    assert "prefers-color-scheme:dark" in (style.text or "")


@pytest.mark.parametrize(
    ("largest", "top"), [(0.7, 1), (3, 4), (4.5, 5), (61, 100), (996, 1_000), (0, 1)]
)
def test_axes_end_at_round_numbers(largest: float, top: float) -> None:
    assert nice_top([largest]) == pytest.approx(top)


@pytest.mark.parametrize(("value", "text"), [(250, "250"), (30_000, "30k"), (2_000_000, "2M")])
def test_sizes_are_short(value: float, text: str) -> None:
    assert short(value) == text
