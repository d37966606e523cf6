"""Text search of PostgreSQL: which configuration suits a language, and texts that it can read."""

from __future__ import annotations

from typing import LiteralString

from forager.extract.languages import primary_language

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
    return CONFIGURATIONS.get(primary_language(language or ""), NEUTRAL)


def quoted(lexeme: str) -> str:
    """A lexeme in the syntax of a query."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def readable_words(text: LiteralString) -> LiteralString:
    """SQL of a text in which `to_tsvector` finds all words, in a time proportional to its length.

    Without `translate`, the text between angle brackets would be a tag of HTML, in which PostgreSQL
    finds no words; quotes in it may move its end to a bracket much later. In a run of characters
    without a space, such as a_a_a_ or ./././, it may look for the end of a URL, an email address or
    a path from each character on: 49,000 took 27 seconds. Long runs get spaces.
    """
    return f"""
        translate(CASE WHEN {text} ~ '[^[:space:]]{{200}}'
                       THEN regexp_replace({text}, '[^[:space:]]{{100}}', '\\& ', 'g')
                       ELSE {text} END, '<>', '  ')"""
