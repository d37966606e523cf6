"""Checks of jobs before they are enqueued, and of texts before they are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from forager.db.ids import new_id
from forager.errors import InvalidInput, error_text
from forager.jobs.job import NewJob
from forager.jobs.kinds import kind_named
from forager.tracing import traceparent

MAX_PAYLOAD_BYTES = 1 << 20
PRIORITIES = range(-(2**31), 2**31)


def checked_job(job: NewJob) -> NewJob:
    """The job as it will be stored; refuses what PostgreSQL or the handler would refuse later."""
    if job.priority not in PRIORITIES:
        raise InvalidInput(f"priority {job.priority} is out of range")
    if job.max_retries < 0 or job.delay < 0:
        raise InvalidInput("max_retries and delay cannot be negative")
    kind = kind_named(job.kind)
    payload = kind.check(_checked_payload(job.payload))
    return replace(
        job,
        id=new_id(),
        payload=payload,
        priority=int(job.priority),  # a comparison is a number in Python, but not in JSON
        trace=traceparent(),
        host=kind.host(payload),
        own_runner=kind.runs_alone,
    )


def _checked_payload(payload: Any) -> dict[str, Any]:
    if not isinstance(payload, dict):
        raise InvalidInput("a job's payload must be an object")
    try:
        encoded = orjson.dumps(payload)
    except TypeError as error:
        raise InvalidInput(f"the payload is not JSON: {error_text(error)}") from None
    if len(encoded) > MAX_PAYLOAD_BYTES:
        raise InvalidInput(f"the payload has {len(encoded)} bytes; at most {MAX_PAYLOAD_BYTES} go")
    if b"\\u0000" in encoded:
        raise InvalidInput("the payload holds a NUL character, which PostgreSQL cannot store")
    return payload
