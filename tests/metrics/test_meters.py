"""Meters hold values until they are taken, and none afterwards."""

from __future__ import annotations

from forager.metrics.catalog import METERS
from forager.metrics.meters import Counter, Histogram, take_all


def test_a_counter_is_taken_once() -> None:
    pages = Counter("pages_total", "", ("outcome",))
    pages.add("fetched")
    pages.add("fetched", amount=2)
    pages.add("failed")
    assert pages.take() == {
        ("pages_total", ("fetched",), ""): 3,
        ("pages_total", ("failed",), ""): 1,
    }
    assert pages.take() == {}


def test_a_value_at_a_bound_belongs_below_it() -> None:
    waits = Histogram("waits_seconds", "", bounds=(0.1, 1))
    for seconds in (0.05, 0.1, 0.5, 7):
        waits.observe(seconds)
    assert waits.take() == {
        ("waits_seconds", (), "sum"): 7.65,
        ("waits_seconds", (), "0.1"): 2,
        ("waits_seconds", (), "1"): 1,
        ("waits_seconds", (), "+Inf"): 1,
    }
    assert take_all([waits]) == {}


def test_names_are_those_that_prometheus_expects() -> None:
    names = [meter.family.name for meter in METERS]
    assert len(set(names)) == len(names)
    for meter in METERS:
        family = meter.family
        assert family.name.startswith("forager_")
        assert family.name.endswith("_total" if isinstance(meter, Counter) else "_seconds")
        assert list(family.bounds) == sorted(family.bounds)
        assert "\n" not in family.help
        assert family.help.endswith(".")
