"""What is shown is what Prometheus' own reader reads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from forager.metrics.meters import Family, Key, MeterKind
from forager.metrics.scrape import exposition

COUNTER = Family("things_total", MeterKind.COUNTER, "Things.", ("kind",))
PLAIN = Family("size_bytes", MeterKind.GAUGE, "A size.")
TIMES = Family("times_seconds", MeterKind.HISTOGRAM, "Times.", ("what",), (0.1, 1))

BOUNDS = ("0.1", "1", "+Inf")


def read(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@given(st.dictionaries(st.text(), st.floats(0, 1e15, allow_nan=False), max_size=4))
def test_every_label_and_number_comes_back(values: dict[str, float]) -> None:
    given_values: dict[Key, float] = {
        ("things_total", (label,), ""): value for label, value in values.items()
    }
    found = read(exposition([COUNTER], given_values))
    assert found == {("things_total", (("kind", label),)): value for label, value in values.items()}


def test_buckets_add_up() -> None:
    values: dict[Key, float] = {
        ("times_seconds", ("x",), "0.1"): 2,
        ("times_seconds", ("x",), "+Inf"): 1,
        ("times_seconds", ("x",), "sum"): 7.5,
    }
    found = read(exposition([TIMES], values))
    buckets = [found["times_seconds_bucket", (("le", le), ("what", "x"))] for le in BOUNDS]
    assert buckets == [2, 2, 3]
    assert found["times_seconds_sum", (("what", "x"),)] == 7.5
    assert found["times_seconds_count", (("what", "x"),)] == 3


def test_nothing_yet_is_zero_where_it_has_no_labels() -> None:
    text = exposition([PLAIN, COUNTER], {})
    assert read(text) == {("size_bytes", ()): 0}
    assert "# TYPE things_total counter\n" in text


def test_series_of_another_version_are_left_out() -> None:
    values: dict[Key, float] = {("things_total", ("a", "b"), ""): 1, ("forgotten_total", (), ""): 1}
    assert read(exposition([COUNTER], values)) == {}


def test_large_numbers_are_exact() -> None:
    text = exposition([PLAIN], {("size_bytes", (), ""): float(2**53)})
    assert text.endswith("size_bytes 9007199254740992\n")
