"""The links of one page, made absolute, within bounds."""

from __future__ import annotations

import ada_url

MAX_HREF = 8_192
# Every link repeats the page's address: a page of short links with a long address could grow a
# thousandfold. Real pages stay far below this.
MIN_BUDGET = 2_000_000

_NOWHERE = ("javascript:", "data:", "blob:", "about:", "vbscript:")


class Links:
    """Resolves against one base and remembers, since pages repeat their links."""

    __slots__ = ("_known", "base", "budget", "dropped")

    def __init__(self, base: str, budget: int = MIN_BUDGET) -> None:
        self.base = base
        self.budget = budget
        self.dropped = 0  # links beyond the budget
        self._known: dict[str, str | None] = {}

    def absolute(self, href: str | None) -> str | None:
        """The destination as markdown writes it, or None where it leads nowhere."""
        if href is None:
            return None
        if href not in self._known:
            self._known[href] = _target(href, self.base)
        url = self._known[href]
        if url is None:
            return None
        self.budget -= len(url)
        if self.budget < 0:
            self.dropped += 1
            return None
        return url


def _target(href: str, base: str) -> str | None:
    href = href.strip()
    if not href or len(href) > MAX_HREF or href[:11].lower().startswith(_NOWHERE):
        return None
    try:
        url: str = ada_url.join_url(base, href)
    except ValueError:
        return None
    if "(" in url or ")" in url or "<" in url or ">" in url or " " in url:
        for character in "()<> ":
            url = url.replace(character, f"%{ord(character):02X}")
    return url
