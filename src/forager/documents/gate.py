"""The quality gate: whether a generation is good enough to replace the one readers see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# pages that are gone are no fault of the crawl
GONE = frozenset({"http_404", "http_410", "soft_404"})


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
    reasons: Mapping[str, int] | None = None

    @property
    def at_fault(self) -> int:
        gone = sum(times for reason, times in (self.reasons or {}).items() if reason in GONE)
        return self.failed - gone


def objection(pages: int, pages_before: int, effort: Effort, limits: GateLimits) -> str | None:
    """Why a generation should not be published; None if it may."""
    if not pages:
        return "it has no pages"
    # in whole pages: a share computed in floating point would turn away an exact 20 %
    if pages_before - pages > limits.max_shrink * pages_before + 1e-9:
        return f"pages fell from {pages_before} to {pages}"
    if effort.at_fault > limits.max_failed * effort.tried + 1e-9:
        return f"{effort.at_fault} of {effort.tried} URLs failed"
    return None
