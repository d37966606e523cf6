"""Which request headers may be shown, and sent to anybody."""

from __future__ import annotations

# what a header with one of these names says is no secret; any other may be one
_PUBLIC = frozenset({"user-agent", "from", "dnt", "cache-control", "pragma"})


def is_public_header(header: str) -> bool:
    name = header.strip().lower()
    return name in _PUBLIC or name.startswith("accept")
