"""Words that every product has in its search vector, and that nobody can type."""

from __future__ import annotations

from collections.abc import Iterator

# PostgreSQL's parser never makes a word that begins with it
_MARK = "§"


def marks_of(config: str, sku: str | None, gtin: str | None) -> Iterator[str]:
    """What its other words were made by, and its numbers as they are looked up."""
    yield config_mark(config)
    if sku is not None:
        yield sku_mark(sku)
    if gtin is not None:
        yield gtin_mark(gtin)


def config_mark(config: str) -> str:
    return f"{_MARK}{config}"


def sku_mark(sku: str) -> str:
    """However it is written: in capitals or not."""
    return f"{_MARK}sku:{sku.lower()}"


def gtin_mark(gtin: str) -> str:
    """A UPC, and the EAN and the GTIN-14 that are the same with zeros before it."""
    return f"{_MARK}gtin:{gtin.lstrip('0')}"


def quoted(lexeme: str) -> str:
    """A lexeme as it stands in a query."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"
