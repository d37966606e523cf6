"""Text for a terminal: characters that cannot steer it, and short times."""

from __future__ import annotations

import re
from datetime import UTC, datetime

# control characters but tab and newline; marks, embeddings, overrides and isolates of direction
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Text without control characters: pages and jobs may hold what a terminal would obey."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def short_time(at: datetime | None) -> str:
    """A local time, without the date if that is today."""
    if at is None:
        return ""
    local = at.astimezone()
    today = datetime.now(UTC).astimezone().date()
    return local.strftime("%H:%M:%S" if local.date() == today else "%Y-%m-%d %H:%M")
