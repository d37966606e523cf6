"""Users read plain technical English: phrases that were replaced must not return."""

from __future__ import annotations

import re
from pathlib import Path

from user_texts import texts

BANNED = Path(__file__).with_name("banned_phrases.txt")


def test_no_banned_phrase_is_shown_to_users() -> None:
    """`docs/reference/glossary.md` has the terms to use."""
    lines = [line for line in BANNED.read_text().splitlines() if line and line[0] != "#"]
    banned = re.compile(rf"(?<![\w-])(?:{'|'.join(lines)})(?![\w-])", re.IGNORECASE)
    found = [
        f"{place}: {match[0]!r} in …{text[max(0, match.start() - 50) : match.end() + 30]!r}…"
        for place, text in dict.fromkeys(texts())
        for match in banned.finditer(text)
    ]
    assert not found, "\n".join(found)
