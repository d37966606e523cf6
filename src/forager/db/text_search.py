"""Which text search configuration of PostgreSQL suits a language."""

from __future__ import annotations

# every PostgreSQL from 15 on has these
CONFIGURATIONS = {
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


def configuration_of(language: str | None) -> str:
    """The configuration of one language; a language that is not known gets the neutral one."""
    return CONFIGURATIONS.get(primary(language or ""), NEUTRAL)


def primary(language: str) -> str:
    """The language without its region: en of en-GB."""
    return language.replace("_", "-").partition("-")[0].strip().lower()
