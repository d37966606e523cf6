"""Text that cannot steer a terminal, nor show its characters in another order than they have."""

from __future__ import annotations

import re

# control characters but tab and newline; marks, embeddings, overrides and isolates of direction
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Text without control characters: pages and jobs may hold what a terminal would obey."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)
