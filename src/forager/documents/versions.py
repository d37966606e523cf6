"""Names and versions of sources: `python@3.12` is a version of `python`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from forager.errors import InvalidInput, NotFound

_NUMBERS = re.compile(r"\d+")
_VERSION = r"v?\d+(?:\.\d+)*(?:\.[x*])?"
_CONDITION = re.compile(rf"\s*(>=|<=|>|<|==?)?\s*({_VERSION})\s*")
_SPAN = re.compile(rf"\s*({_VERSION})\s*(?:-|\.\.)\s*({_VERSION})\s*")
_NAME_PARTS = re.compile(r"[^a-z0-9+]+")
# parts of host names that name no source
_GENERIC = frozenset(
    ("www", "docs", "doc", "documentation", "manual", "org", "com", "net", "io", "dev", "html",
     "en", "latest", "stable", "readthedocs", "github", "gitlab", "pages", "app", "api", "the",
     "localhost")
)  # fmt: skip


def base_name(source_id: str) -> str:
    """The name that the versions of a source share."""
    return source_id.partition("@")[0]


@lru_cache(maxsize=4096)
def name_parts(source_id: str) -> frozenset[str]:
    """The words that name a source: `python` of `docs.python.org@3.13`."""
    parts = _NAME_PARTS.split(base_name(source_id).lower())
    return frozenset(part for part in parts if len(part) > 1) - _GENERIC


def version_of(source_id: str) -> str | None:
    """The version in the name of a source: `3.12` of `python@3.12`."""
    return source_id.partition("@")[2].removeprefix("v") or None


def version_key(version: str | None) -> tuple[bool, tuple[int, ...], str]:
    """The order of versions: 3.9 before 3.10; names such as `main` before numbers."""
    numbers = tuple(map(int, _NUMBERS.findall(version or "")))
    return bool(numbers), numbers, version or ""


def select_versions(sources: Sequence[str], wanted: str) -> list[str]:
    """The sources whose version is in a range: `3.12`, `>=3.10,<3.13`, `3.10-3.12` or `3.x`.

    Raises NotFound with the versions that exist if there is none.
    """
    matches = _conditions(wanted)
    found = [
        source
        for source in sources
        if (version := version_of(source)) is not None
        and (version == wanted or all(_fits(version, *each) for each in matches))
    ]
    if found:
        return found
    known = sorted(filter(None, {version_of(source) for source in sources}), key=version_key)
    raise NotFound(
        f"no source has version {wanted}",
        hint=f"Versions: {', '.join(known)}" if known else "No source has a version.",
    )


def _conditions(wanted: str) -> list[tuple[str, tuple[int, ...]]]:
    if found := _SPAN.fullmatch(wanted):
        return [(">=", _numbers(found[1])), ("<=", _numbers(found[2]))]
    conditions = []
    for part in wanted.split(","):
        if (found := _CONDITION.fullmatch(part)) is None:
            if any(map(str.isdigit, wanted)) and any(sign in wanted for sign in "<>=,"):
                raise InvalidInput(
                    f"{wanted!r} is not a range of versions",
                    hint="Write 3.12, '>=3.10,<3.13', 3.10-3.12 or 3.x.",
                )
            return [("no", ())]
        conditions.append((found[1] or "=", _numbers(found[2])))
    return conditions


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, _NUMBERS.findall(version)))


def _fits(version: str, operator: str, limit: tuple[int, ...]) -> bool:
    """`<=3.12` includes 3.12.4, as `=3.12` does."""
    numbers = _numbers(version)
    same = numbers[: len(limit)] == limit
    if not numbers or operator == "no":
        return False
    match operator:
        case ">=":
            return numbers >= limit
        case "<":
            return numbers < limit
        case ">":
            return numbers > limit and not same
        case "<=":
            return numbers < limit or same
        case _:
            return same
