"""A job as the queue should keep it."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from forager.jobs.job import Lease
from forager.jobs.lifecycle import LOSSES_LIMIT, Status


@dataclass
class Modelled:
    """What one job should look like."""

    max_retries: int
    source: str | None
    status: Status = Status.PENDING
    lease: int = 0
    worker: UUID | None = None
    retries: int = 0
    losses: int = 0
    own_runner: bool = False
    events: int = 1
    beat: int = 0  # which heartbeat is in the row
    stale: bool = False
    writes: list[int] = field(default_factory=list)

    def leased_under(self, lease: Lease) -> bool:
        return self.worker is not None and lease.number == self.lease

    def move(self, status: Status, *, revokes: bool = True, keeps_worker: bool = False) -> None:
        self.status = status
        self.lease += revokes
        self.worker = self.worker if keeps_worker else None
        self.events += 1

    def end_failed(self, *, permanent: bool = False) -> None:
        if self.status is Status.PAUSED:
            self.move(Status.PAUSED)
        elif self.retries < self.max_retries and not permanent:
            self.retries += 1
            self.move(Status.PENDING)
        else:
            self.move(Status.FAILED)

    def lose_runner(self, losses: int | None = None) -> None:
        if self.status is Status.PAUSED:
            self.move(Status.PAUSED)
            return
        self.losses = self.losses + 1 if losses is None else losses
        self.own_runner |= self.losses >= LOSSES_LIMIT
        self.move(Status.PENDING)

    def recover(self) -> None:
        if self.own_runner:
            self.end_failed()
        else:
            self.lose_runner()
