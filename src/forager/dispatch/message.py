"""A message: a Celery task (protocol 2) that names tasks of one domain. Ids, never state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import orjson

from forager.dispatch.topology import Route

# more ids than anybody of us sends
MOST_IDS = 1_000
CONTENT_TYPE, CONTENT_ENCODING = "application/json", "utf-8"
PERSISTENT = 2
_EMBEDDED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


@dataclass(frozen=True, slots=True)
class TaskMessage:
    route: Route
    task_ids: Sequence[int]

    def body(self) -> bytes:
        return orjson.dumps([[list(self.task_ids)], {}, _EMBEDDED])

    def properties(self) -> dict[str, Any]:
        """Of the AMQP message; no header that Celery can do without: they cost most of the time."""
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
    """Ids as they came from the broker, where anybody may have written them."""
    if not isinstance(named, list) or not 0 < len(named) <= MOST_IDS:
        raise ValueError("expected a list of ids of tasks")
    if not all(type(task_id) is int and 0 < task_id < 2**63 for task_id in named):
        raise ValueError("expected positive numbers as ids of tasks")
    return named
