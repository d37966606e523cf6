"""A scrape: everything that is known of all processes, as Prometheus asks for it."""

from __future__ import annotations

from dataclasses import dataclass

from forager import __version__
from forager.db.database import Database
from forager.db.schema import SCHEMA_VERSION
from forager.metrics import store
from forager.metrics.exposition import exposition
from forager.metrics.gauges import Gauges
from forager.metrics.meters import Family, Key, Kind
from forager.metrics.recorded import METERS
from forager.settings import Settings

INFO = Family(
    "forager_info", Kind.GAUGE, "The version that answers, always 1.", ("version", "schema")
)


@dataclass(frozen=True, slots=True)
class Scrape:
    """One for each process that shows metrics: it remembers what was dear to read."""

    database: Database
    gauges: Gauges

    async def text(self) -> str:
        gauges = await self.gauges.values()
        async with self.database.connection() as connection:
            values = await store.select_values(connection)
        about: dict[Key, float] = {("forager_info", (__version__, SCHEMA_VERSION), ""): 1.0}
        return exposition(self.families(), {**about, **gauges, **values})

    def families(self) -> list[Family]:
        meters = [meter.family for meter in METERS]
        return [INFO, *(gauge.family for gauge in self.gauges.all()), *meters]


def open_scrape(database: Database, settings: Settings) -> Scrape:
    return Scrape(database, Gauges(database, settings))
