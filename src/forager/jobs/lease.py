"""A lease: the right to write for one job, until somebody takes it away."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Lease:
    """What a worker got when it claimed a job."""

    job_id: UUID
    number: int
    worker_id: UUID

    @property
    def actor(self) -> str:
        return f"worker {self.worker_id}"
