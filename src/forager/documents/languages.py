"""Which text search configuration suits a language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from forager.db.text_search import CONFIGURATIONS, NEUTRAL, primary

__all__ = ["NEUTRAL", "configuration_for"]


def configuration_for(languages: Iterable[str | None]) -> str | None:
    """The configuration of the language most of the pages are in; None if none says."""
    known = Counter(primary(language) for language in languages if language)
    if not known:
        return None
    return CONFIGURATIONS.get(known.most_common(1)[0][0], NEUTRAL)
