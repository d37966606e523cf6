"""Repeatable randomness: all random decisions of a run follow from its seed."""

from __future__ import annotations

from random import Random


def generator_for(seed: int, what: object) -> Random:
    """Return a separate generator for each purpose, so that one does not affect the others."""
    return Random(f"{seed} {what}")  # noqa: S311 - not a secret
