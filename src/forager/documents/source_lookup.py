"""Find sources by an approximate name, and say what each is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from uuid import UUID

from forager.db.database import Database
from forager.documents.generation import Source
from forager.documents.store import generations
from forager.documents.versions import base_name

_SEPARATORS = re.compile(r"[^a-z0-9+]+")
# from 0 to 1; one wrong letter in six is found, another short name is not
MIN_SIMILARITY = 0.75
MAX_SUMMARY = 160


async def find_by_name(
    database: Database, name: str, *, user_id: UUID | None, limit: int
) -> list[Source]:
    """Sources whose name resembles this one, best first; with an owner, only that owner's."""
    async with database.connection() as connection:
        names = await generations.select_source_names(connection, user_id)
        scored = sorted((-_similarity(name, each), each) for each in names)
        best = [each for score, each in scored if -score >= MIN_SIMILARITY][:limit]
        found = await generations.select_sources_by_id(connection, best)
    return sorted(found, key=lambda source: best.index(source.id))


async def names_with(
    database: Database, text: str, *, user_id: UUID | None, limit: int
) -> list[str]:
    """Names of sources with published pages that contain a text, the shortest first."""
    names = await database.run(generations.select_source_names, user_id)
    found = (name for name in names if text.lower() in name.lower())
    return sorted(found, key=lambda name: (len(name), name))[:limit]


def _similarity(typed: str, source_id: str) -> float:
    """From 0 to 1: of the whole name, with or without its version, or of a part of it."""
    wanted = typed.strip().lower()
    base = base_name(source_id).lower()
    whole = max(_ratio(wanted, source_id.lower()), _ratio(wanted, base))
    words = [word for word in _SEPARATORS.split(wanted) if word]
    parts = [part for part in _SEPARATORS.split(base) if part]
    if not words or not parts:
        return whole
    by_part = sum(max(_ratio(word, part) for part in parts) for word in words) / len(words)
    return max(whole, 0.99 * by_part)


def _ratio(typed: str, known: str) -> float:
    return SequenceMatcher(None, typed, known, autojunk=False).ratio()


async def summaries_of(database: Database, sources: Sequence[Source]) -> dict[str, str]:
    """The title of each source's first page with the beginning of its text, on one line."""
    rows = await database.run(
        generations.select_first_pages, [source.id for source in sources], MAX_SUMMARY
    )
    return {
        source_id: ": ".join(filter(None, (title, " ".join((text or "").split()))))
        for source_id, title, text in rows
    }
