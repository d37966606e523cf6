"""What there is in the broker: exchanges, and one queue for each stage, region and band.

Quorum queues know no priorities of messages before RabbitMQ 4, so each band has a queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

EXCHANGE = "forager"
DEAD = "forager.dead"
# a message that kills its worker, or is given back over and over, is not for us
DELIVERY_LIMIT = 20
MOST_DEAD = 10_000
STAGES = ("crawl", "parse")


class Band(IntEnum):
    """Of priorities. A worker that is behind takes four of the first for one of the last."""

    HIGH = 1
    NORMAL = 2
    LOW = 3

    @property
    def share(self) -> int:
        return {Band.HIGH: 4, Band.NORMAL: 2, Band.LOW: 1}[self]


@dataclass(frozen=True, slots=True)
class Route:
    """Where a message goes."""

    stage: str
    band: Band
    region: str | None = None

    @property
    def task(self) -> str:
        return f"forager.{self.stage}"

    @property
    def queue(self) -> str:
        place = f".{self.region}" if self.region else ""
        return f"{self.task}{place}.{self.band.name.lower()}"


@dataclass(frozen=True, slots=True)
class Place:
    """The regions in which the tasks of a domain are downloaded and parsed; None: in any."""

    crawl: str | None = None
    parse: str | None = None


def routes_of(region: str | None) -> list[Route]:
    """What a worker of this region consumes: what is tied to it, and what is tied to nothing."""
    regions = [None] if region is None else [region, None]
    return [Route(stage, band, place) for place in regions for band in Band for stage in STAGES]


QUEUE_ARGUMENTS: dict[str, Any] = {
    "x-queue-type": "quorum",
    "x-dead-letter-exchange": DEAD,
    "x-delivery-limit": DELIVERY_LIMIT,
}
DEAD_ARGUMENTS: dict[str, Any] = {"x-queue-type": "quorum", "x-max-length": MOST_DEAD}
