"""Where a crawl stands, as it is kept beside its job."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from forager.crawl.ledger import Ledger
from forager.crawl.settlement import Outcome


@dataclass(slots=True)
class CrawlState:
    """Everything a crawl knows besides its URLs. Written whole with every batch: it is small."""

    ledger: Ledger = field(default_factory=Ledger)
    next_seq: int = 0
    depth: int = 0
    # time spent running, over all runs
    seconds: float = 0.0
    # seeds and sitemaps are in the frontier
    seeded: bool = False
    # where seeds redirected to, outside the first scope
    more_seeds: list[str] = field(default_factory=list)
    sitemaps_read: list[str] = field(default_factory=list)
    sitemaps_waiting: list[str] = field(default_factory=list)

    def values(self) -> dict[str, Any]:
        """As the table has them."""
        ledger = self.ledger
        return {
            "discovered": ledger.discovered,
            **{outcome.value: ledger.settled[outcome] for outcome in Outcome},
            "pending": ledger.pending,
            "processed": ledger.processed,
            "depth": self.depth,
            "reasons": ledger.reasons,
            "bytes_fetched": ledger.bytes_fetched,
            "seconds": self.seconds,
            "next_seq": self.next_seq,
            "checkpoint": {
                "seeded": self.seeded,
                "more_seeds": self.more_seeds,
                "sitemaps_read": self.sitemaps_read,
                "sitemaps_waiting": self.sitemaps_waiting,
            },
        }


def state_from(row: dict[str, Any]) -> CrawlState:
    return CrawlState(
        ledger=ledger_from(row),
        next_seq=row["next_seq"],
        depth=row["current_depth"],
        seconds=row["seconds"],
        **row["checkpoint"],
    )


def ledger_from(row: dict[str, Any]) -> Ledger:
    return Ledger(
        pending=row["total_pending"],
        settled=Counter({outcome: row[outcome.value] for outcome in Outcome}),
        reasons={group: Counter(counts) for group, counts in row["reasons"].items()},
        bytes_fetched=row["bytes_fetched"],
    )
