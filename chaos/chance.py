"""Chance that can be repeated: everything a run does at random follows from its seed."""

from __future__ import annotations

from random import Random


def seeded(seed: int, what: object) -> Random:
    """A chance of its own for each purpose: how often one is asked does not change the others."""
    return Random(f"{seed} {what}")  # noqa: S311 - not a secret
