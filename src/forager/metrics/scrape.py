"""A scrape: the metrics of all processes, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from shutil import disk_usage

from forager import __version__
from forager.db.database import Database
from forager.db.schema import SCHEMA_VERSION
from forager.metrics import store
from forager.metrics.catalog import METERS
from forager.metrics.gauges import GAUGES, Gauges
from forager.metrics.meters import INFINITY, SUM, Family, Key, Labels, MeterKind, bucket_names
from forager.settings import Settings

INFO = Family(
    "forager_info", MeterKind.GAUGE, "The version that answers, always 1.", ("version", "schema")
)
DISK = Family(
    "forager_disk_free_bytes",
    MeterKind.GAUGE,
    "Free space where the home folder of this process is.",
)


@dataclass(frozen=True, slots=True)
class Scrape:
    """One for each process that shows metrics: it caches expensive gauges."""

    database: Database
    gauges: Gauges

    async def text(self) -> str:
        """All metrics in the text format of Prometheus."""
        gauges = await self.gauges.values()
        values = await self.database.run(store.select_values)
        about: dict[Key, float] = {
            (INFO.name, (__version__, SCHEMA_VERSION), ""): 1.0,
            (DISK.name, (), ""): _free_bytes(self.gauges.settings.home),
        }
        return exposition(self.families(), {**about, **gauges, **values})

    def families(self) -> list[Family]:
        """All metrics, with their help texts."""
        meters = [meter.family for meter in METERS]
        return [INFO, DISK, *(gauge.family for gauge in GAUGES), *meters]


def _free_bytes(home: Path) -> float:
    folder = next(folder for folder in (home, *home.parents) if folder.exists())
    return float(disk_usage(folder).free)


def open_scrape(database: Database, settings: Settings) -> Scrape:
    """The metrics of this installation."""
    return Scrape(database, Gauges(database, settings))


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(families: Iterable[Family], values: Mapping[Key, float]) -> str:
    """All families with their values, also those without any."""
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
        # written by another version of Forager with other labels
        if len(labels) != len(family.labels):
            continue
        pairs = [*zip(family.labels, labels, strict=True)]
        if family.kind is MeterKind.HISTOGRAM:
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
