"""Which text search configuration suits a language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

# every PostgreSQL from 15 on has these
_CONFIGURATIONS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french",
    "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch",
    "nn": "norwegian", "no": "norwegian", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
    "yi": "yiddish",
}  # fmt: skip
# knows no language: words are found as they are written
NEUTRAL = "simple"


def configuration_for(languages: Iterable[str | None]) -> str | None:
    """The configuration of the language most of the pages are in; None if none says."""
    known = Counter(_primary(language) for language in languages if language)
    if not known:
        return None
    return _CONFIGURATIONS.get(known.most_common(1)[0][0], NEUTRAL)


def _primary(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].strip().lower()
