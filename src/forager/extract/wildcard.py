"""Wildcard patterns that match in linear time, whatever a stranger writes into them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Literal parts in order, with anything between them; `anchored` ties the last to the end."""

    parts: tuple[str, ...]
    anchored: bool

    @classmethod
    def compile(cls, pattern: str, *, anchored: bool) -> Wildcard:
        """Split at each `*`; no other character is special."""
        first, *others = pattern.split("*")
        if not others:
            return cls((first,), anchored)
        # "**" means "*": an empty part in the middle matches anywhere
        return cls((first, *filter(None, others[:-1]), others[-1]), anchored)

    def matches(self, text: str) -> bool:
        # The leftmost place of each part leaves most room for the next, so there is nothing to
        # go back to: every character of the text is looked at by one part only.
        first, rest = self.parts[0], self.parts[1:]
        if not text.startswith(first):
            return False
        if not rest:
            return not self.anchored or len(text) == len(first)
        position = len(first)
        for part in rest[:-1]:
            position = text.find(part, position)
            if position < 0:
                return False
            position += len(part)
        return self._ends(text, rest[-1], position)

    def _ends(self, text: str, last: str, position: int) -> bool:
        if self.anchored:
            return len(text) - len(last) >= position and text.endswith(last)
        return text.find(last, position) >= 0
