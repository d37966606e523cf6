"""Questions to the lake, as the API and the dashboard ask them: a few at a time."""

from __future__ import annotations

from forager.analytics.answers import Answer, answer
from forager.api.slots import Slots
from forager.settings import Settings

# each is a process that may use two cores and 2 GB
ANALYSES = Slots(2, "an analysis")


async def analyse(settings: Settings, name: str, *, days: int, limit: int) -> Answer:
    """The answer, or NotYet while enough others are being made."""
    with ANALYSES.taken():
        return await answer(settings, name, days=days, limit=limit)
