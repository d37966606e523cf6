"""The ledger: at every commit, each discovered URL is counted in exactly one of six states."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from forager.crawl.settlement import Outcome

# reasons are counted in groups: by the outcome they belong to, and some beside it
OUT_OF_SCOPE = "out_of_scope"
REMARKS = "remarks"
SITEMAPS = "sitemaps"
# failed pages whose last good version is kept, by why they failed
CARRIED_OVER = "carried_over"
# pages that were rendered in a browser, by why
RENDERED = "rendered"
# a remark: pages that are kept although others say nearly the same
NEAR_DUPLICATE = "near_duplicate"


@dataclass(slots=True)
class Ledger:
    """discovered = fetched + unchanged + duplicate + failed + excluded + pending."""

    pending: int = 0
    settled: Counter[Outcome] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    bytes_fetched: int = 0

    @property
    def discovered(self) -> int:
        """All known URLs: the sum of all states."""
        return self.pending + sum(self.settled.values())

    @property
    def processed(self) -> int:
        """Number of URLs that were tried; excluded ones were not."""
        return sum(self.settled.values()) - self.settled[Outcome.EXCLUDED]

    @property
    def pages(self) -> int:
        """URLs that were read, new or unchanged."""
        return self.settled[Outcome.FETCHED] + self.settled[Outcome.UNCHANGED]

    @property
    def carried_over(self) -> int:
        """Number of failed pages whose last good version is kept."""
        return sum(self.reasons.get(CARRIED_OVER, {}).values())

    @property
    def listed(self) -> int:
        """Pages of the generation, which a limit of pages is about."""
        return self.pages + self.carried_over

    def percentage(self, max_pages: int | None) -> int:
        """Share of the known URLs that is settled; 0 without pages, 100 only for completed jobs."""
        settled = sum(self.settled.values()) if self.listed else 0
        share = settled / (settled + self.pending) if settled else 0.0
        if max_pages is not None:
            share = max(share, self.listed / max_pages)
        return min(99, int(100 * share))

    def settle(self, outcome: Outcome, reason: str | None) -> None:
        """Count a pending URL as settled."""
        self.pending -= 1
        self.settled[outcome] += 1
        self.note(outcome, reason)

    def exclude(self, reason: str) -> None:
        """Count a URL that a rule refused when it was discovered."""
        self.settled[Outcome.EXCLUDED] += 1
        self.note(Outcome.EXCLUDED, reason)

    def revive(self, reason: str) -> None:
        """Count an excluded URL as pending after its refusal was lifted."""
        self.settled[Outcome.EXCLUDED] -= 1
        self.note(Outcome.EXCLUDED, reason, -1)
        self.pending += 1

    def requeue_failed(self, reason: str, *, carried_over: bool) -> None:
        """Count a failed URL as pending again."""
        self.settled[Outcome.FAILED] -= 1
        self.note(Outcome.FAILED, reason, -1)
        if carried_over:
            self.note(CARRIED_OVER, reason, -1)
        self.pending += 1

    def resettle(
        self, before: Outcome, after: Outcome, reason: str | None, new_reason: str | None
    ) -> None:
        """Change the outcome of a settled URL."""
        self.settled[before] -= 1
        self.note(before, reason, -1)
        self.settled[after] += 1
        self.note(after, new_reason)

    def note_total(self, group: str, reason: str, number: int) -> None:
        """Replace the count of a reason."""
        self.note(group, reason, number - self.reasons.get(group, Counter())[reason])

    def note(self, group: str, reason: str | None, times: int = 1) -> None:
        """Count a reason in its group; nothing without a reason."""
        if reason is not None:
            counts = self.reasons.setdefault(group, Counter())
            counts[reason] += times
            if not counts[reason]:
                del counts[reason]

    def summary(self) -> dict[str, Any]:
        """The ledger as reports show it."""
        return {
            "discovered": self.discovered,
            **{outcome.value: self.settled[outcome] for outcome in Outcome},
            "pending": self.pending,
            "carried_over": self.carried_over,
            "failed_by_reason": self._by_reason(Outcome.FAILED),
            "carried_over_by_reason": self._by_reason(CARRIED_OVER),
            "excluded_by_reason": self._by_reason(Outcome.EXCLUDED),
            "duplicate_by_reason": self._by_reason(Outcome.DUPLICATE),
            "out_of_scope_links": self._by_reason(OUT_OF_SCOPE),
            "rendered_by_reason": self._by_reason(RENDERED),
            "remarks": self._by_reason(REMARKS),
            "sitemaps": self._by_reason(SITEMAPS),
        }

    def reasons_of(self, group: str) -> list[tuple[str, int]]:
        """Counts by reason, the most frequent first."""
        return self.reasons.get(group, Counter()).most_common()

    def _by_reason(self, group: str) -> dict[str, int]:
        return dict(self.reasons_of(group))


@dataclass(slots=True)
class CrawlState:
    """The state of a crawl besides its URLs. It is small, and written whole with every batch."""

    ledger: Ledger = field(default_factory=Ledger)
    next_seq: int = 0
    depth: int = 0
    # time spent running, over all runs
    seconds: float = 0.0
    # seeds and sitemaps are in the frontier
    seeded: bool = False
    # targets of redirected seeds, outside the first scope
    more_seeds: list[str] = field(default_factory=list)
    sitemaps_read: list[str] = field(default_factory=list)
    sitemaps_waiting: list[str] = field(default_factory=list)

    def values(self) -> dict[str, Any]:
        """The columns of the table."""
        ledger = self.ledger
        return {
            "discovered": ledger.discovered,
            **{outcome.value: ledger.settled[outcome] for outcome in Outcome},
            "total_pending": ledger.pending,
            "total_processed": ledger.processed,
            "current_depth": self.depth,
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
    """The state of a crawl from its row."""
    return CrawlState(
        ledger=ledger_from(row),
        next_seq=row["next_seq"],
        depth=row["current_depth"],
        seconds=row["seconds"],
        **row["checkpoint"],
    )


def ledger_from(row: dict[str, Any]) -> Ledger:
    """The ledger of a crawl from its row."""
    return Ledger(
        pending=row["total_pending"],
        settled=Counter({outcome: row[outcome.value] for outcome in Outcome}),
        reasons={group: Counter(counts) for group, counts in row["reasons"].items()},
        bytes_fetched=row["bytes_fetched"],
    )
