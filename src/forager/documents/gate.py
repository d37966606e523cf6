"""The quality gate: whether a generation is good enough to replace the one readers see.

Pages that are carried over count as pages, because readers keep them, and as failed URLs, because
a site that cannot serve a large share of its pages is not in a state worth publishing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# pages that are gone are no fault of the crawl
GONE = frozenset({"http_404", "http_410", "soft_404"})
MAX_REASONS = 5


@dataclass(frozen=True, slots=True)
class GateLimits:
    """By what share pages may fall, and what share of the tried URLs may fail."""

    max_shrink: float
    max_failed: float


@dataclass(frozen=True, slots=True)
class Effort:
    """What a crawl tried, and how it failed, by reason."""

    tried: int = 0
    failed: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def at_fault(self) -> int:
        return self.failed - sum(times for reason, times in self.reasons.items() if reason in GONE)

    @property
    def faults(self) -> Mapping[str, int]:
        return {reason: times for reason, times in self.reasons.items() if reason not in GONE}


def objection(pages: int, pages_before: int, effort: Effort, limits: GateLimits) -> str | None:
    """Why a generation should not be published; None if it may."""
    if not pages:
        return f"it has no pages{_counted(effort.reasons)}"
    # in whole pages: a share computed in floating point would turn away an exact 20 %
    if pages_before - pages > limits.max_shrink * pages_before + 1e-9:
        return f"pages fell from {pages_before} to {pages}{_counted(effort.reasons)}"
    if effort.at_fault > limits.max_failed * effort.tried + 1e-9:
        return f"{effort.at_fault} of {effort.tried} URLs failed{_counted(effort.faults)}"
    return None


def _counted(reasons: Mapping[str, int]) -> str:
    """The most frequent reasons, in brackets: ` (370 × http_500, 2 × timeout)`."""
    frequent = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    named = [f"{times} × {reason}" for reason, times in frequent[:MAX_REASONS]]
    more = ["…"] if len(frequent) > MAX_REASONS else []
    return f" ({', '.join(named + more)})" if named else ""
