"""A message: a Celery task (protocol 2) that names tasks of one domain. Ids, never state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from uuid import uuid4

import orjson

EXCHANGE = "forager"
DEAD = "forager.dead"
# a message that kills its worker, or is returned repeatedly, is dropped
DELIVERY_LIMIT = 20
MOST_DEAD = 10_000
# `render`: downloads that need a browser
STAGES = ("crawl", "parse", "render")


class Band(IntEnum):
    """Bands of priorities. A busy worker takes four messages of the first for one of the last."""

    HIGH = 1
    NORMAL = 2
    LOW = 3

    @property
    def share(self) -> int:
        return {Band.HIGH: 4, Band.NORMAL: 2, Band.LOW: 1}[self]


@dataclass(frozen=True, slots=True)
class Route:
    """Where messages about tasks go: a queue for each stage, band and region."""

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


def routes_of(region: str | None, stages: str = "both", *, renders: bool = True) -> list[Route]:
    """What a worker of this region consumes: what is tied to it, and what is tied to nothing.

    `stages` is the setting `task_stages`: a worker of one stage leaves the other's queues alone.
    `renders`: whether it has a browser.
    """
    regions = [None] if region is None else [region, None]
    excluded = {"both": (), "download": ("parse",), "parse": ("crawl", "render")}[stages]
    wanted = [s for s in STAGES if s not in excluded and (renders or s != "render")]
    return [Route(stage, band, place) for place in regions for band in Band for stage in wanted]


QUEUE_ARGUMENTS: dict[str, Any] = {
    "x-queue-type": "quorum",
    "x-dead-letter-exchange": DEAD,
    "x-delivery-limit": DELIVERY_LIMIT,
}
DEAD_ARGUMENTS: dict[str, Any] = {"x-queue-type": "quorum", "x-max-length": MOST_DEAD}


# more than Forager sends
MOST_IDS = 1_000
CONTENT_TYPE, CONTENT_ENCODING = "application/json", "utf-8"
PERSISTENT = 2
_EMBEDDED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """A message about tasks, in the format of Celery."""

    route: Route
    task_ids: Sequence[int]

    def body(self) -> bytes:
        return orjson.dumps([[list(self.task_ids)], {}, _EMBEDDED])

    def properties(self) -> dict[str, Any]:
        """Properties of the AMQP message, with only the headers that Celery needs."""
        message_id = str(uuid4())
        return {
            "content_type": CONTENT_TYPE,
            "content_encoding": CONTENT_ENCODING,
            "delivery_mode": PERSISTENT,
            "correlation_id": message_id,
            "application_headers": {
                "lang": "py",
                "task": self.route.task,
                "id": message_id,
                "root_id": message_id,
                "parent_id": None,
                "group": None,
            },
        }


def checked_ids(named: object) -> list[int]:
    """Validate ids from the broker, which other programs can write to."""
    if not isinstance(named, list) or not 0 < len(named) <= MOST_IDS:
        raise ValueError("expected a list of ids of tasks")
    if not all(type(task_id) is int and 0 < task_id < 2**63 for task_id in named):
        raise ValueError("expected positive numbers as ids of tasks")
    return named
