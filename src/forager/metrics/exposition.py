"""The text that Prometheus reads (exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from forager.metrics.meters import INFINITY, SUM, Family, Key, Kind, Labels, bucket_names

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(families: Iterable[Family], values: Mapping[Key, float]) -> str:
    """All families with their values; one that nobody has recorded yet is named all the same."""
    by_name: dict[str, dict[Labels, dict[str, float]]] = {}
    for (name, labels, part), value in values.items():
        by_name.setdefault(name, {}).setdefault(labels, {})[part] = value
    return "".join(
        f"{line}\n" for family in families for line in _lines(family, by_name.get(family.name, {}))
    )


def _lines(family: Family, series: Mapping[Labels, Mapping[str, float]]) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    if not series and not family.labels:
        series = {(): {}}  # nothing has happened, and nothing is zero
    for labels, parts in sorted(series.items()):
        # of another version of Forager, which divides it by something else
        if len(labels) != len(family.labels):
            continue
        pairs = [*zip(family.labels, labels, strict=True)]
        if family.kind is Kind.HISTOGRAM:
            yield from _histogram(family, pairs, parts)
        else:
            yield _line(family.name, pairs, parts.get("", 0.0))


def _histogram(
    family: Family, pairs: list[tuple[str, str]], parts: Mapping[str, float]
) -> Iterator[str]:
    names = bucket_names(family)
    totals = list(accumulate(parts.get(name, 0.0) for name in names))
    for bound, total in zip(names, totals, strict=True):
        yield _line(f"{family.name}_bucket", [*pairs, ("le", bound)], total)
    yield _line(f"{family.name}_sum", pairs, parts.get(SUM, 0.0))
    yield _line(f"{family.name}_count", pairs, totals[names.index(INFINITY)])


def _line(name: str, pairs: list[tuple[str, str]], value: float) -> str:
    written = ",".join(f'{label}="{_escaped(text)}"' for label, text in pairs)
    number = f"{value:.0f}" if float(value).is_integer() else repr(value)
    return f"{name}{{{written}}} {number}" if written else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
