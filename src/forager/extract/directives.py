"""Robots directives of a page: meta robots and X-Robots-Tag."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

DEFAULT_AGENT = "forager"


@dataclass(frozen=True, slots=True)
class Directives:
    """Directives; combining several can only forbid more."""

    noindex: bool = False
    nofollow: bool = False

    def __or__(self, other: Directives) -> Directives:
        return Directives(self.noindex or other.noindex, self.nofollow or other.nofollow)


ALLOW_ALL = Directives()


def meta_directives(name: str, content: str, agent: str = DEFAULT_AGENT) -> Directives:
    """The directives of one meta element; none if they are for another robot."""
    if name.strip().lower() not in ("robots", agent.lower()):
        return ALLOW_ALL
    return _read(content.split(","))


# "name:" starts the rules of one robot, except where the name is a directive with a value
_AGENT = re.compile(
    r"\s*(?!unavailable_after|max-snippet|max-image-preview|max-video-preview)"
    r"([a-z0-9_.*-]+)\s*:(.*)",
    re.IGNORECASE | re.DOTALL,
)


def header_directives(values: Iterable[str], agent: str = DEFAULT_AGENT) -> Directives:
    """The directives of all X-Robots-Tag headers of a response."""
    result = ALLOW_ALL
    for value in values:
        result |= _read(_words_for(agent.lower(), value))
    return result


def _words_for(agent: str, value: str) -> Iterable[str]:
    applies = True
    for part in value.split(","):
        named = _AGENT.fullmatch(part)
        if named:
            applies = named[1].lower() in (agent, "*")
        if applies:
            yield named[2] if named else part


def _read(words: Iterable[str]) -> Directives:
    found = {word.strip().lower() for word in words}
    everything = "none" in found
    return Directives(everything or "noindex" in found, everything or "nofollow" in found)
