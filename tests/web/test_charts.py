"""Charts: numbers in, SVG out."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as some

from forager.web.charts import (
    BarPart,
    Series,
    line_chart,
    nice_top,
    share_bar,
    sparkline,
    stacked_bar,
)

NUMBERS = some.lists(some.none() | some.floats(0, 1e12), max_size=70)


def widths(markup: str) -> list[float]:
    return [
        float(width) for width in re.findall(r'class="fill-\w" x="[\d.]+" width="([\d.]+)"', markup)
    ]


@given(NUMBERS, NUMBERS)
def test_every_chart_is_well_formed_and_has_no_inline_style(
    first: list[float | None], second: list[float | None]
) -> None:
    series = [Series("<one>", first, "a"), Series("two & three", second, "b")]
    names = [f"minute {i}" for i in range(len(first))]
    for drawn in (line_chart(series, ["a", "b"], 'of "this"', names=names), sparkline(first, "x")):
        ElementTree.fromstring(str(drawn))
        assert "style" not in drawn
        assert "nan" not in drawn


def test_a_bar_is_as_wide_as_its_parts_together() -> None:
    drawn = stacked_bar(
        [BarPart("fetched", 3, "a"), BarPart("failed", 1, "d"), BarPart("none", 0, "b")], "All"
    )
    assert widths(drawn) == [450, 150]
    assert "fetched 3" in drawn
    assert "none 0" not in drawn


def test_a_bar_of_nothing_is_empty() -> None:
    assert widths(stacked_bar([BarPart("fetched", 0, "a")], "All")) == []


def test_a_line_breaks_where_nothing_is_known() -> None:
    drawn = line_chart([Series("pace", [1, None, 2, 3])], ["then", "now"], "Pace")
    assert drawn.count("<polyline") == 2


def test_tooltips_stay_above_their_points_when_the_last_have_none() -> None:
    drawn = line_chart([Series("pace", [1, 2, None, None])], ["a"], "Pace", names=["1 s", "2 s"])
    columns = re.findall(r'class="hover" x="([\d.]+)" width="([\d.]+)"', drawn)
    assert columns == [("0", "150"), ("150", "150")]


def test_a_chart_has_a_text_description() -> None:
    drawn = line_chart([Series("pages", [1, 5, 2])], ["then", "now"], "Pace")
    assert 'aria-label="Pace: pages now 2, at most 5"' in drawn


@pytest.mark.parametrize(
    ("largest", "top"),
    [(0, 2), (0.3, 0.4), (0.9, 1), (1, 2), (3, 4), (17, 20), (41, 60), (600, 600)],
)
def test_axes_end_at_round_numbers(largest: float, top: float) -> None:
    assert math.isclose(nice_top([largest]), top)


def test_a_share_stays_within_its_bar() -> None:
    assert 'width="100"' in share_bar(7, "Progress")
    assert 'width="0"' in share_bar(-1, "Progress")
