"""Versions of parsers: numbers with dots between them, 1.10 after 1.9."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from forager.errors import InvalidInput

_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}", re.ASCII)


def version_key(version: object) -> tuple[int, ...]:
    """What versions are ordered by; InvalidInput for what is none."""
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise InvalidInput(
            f"{version!r} is not a version of a parser", hint="Write numbers and dots: 1, 1.2"
        )
    return tuple(int(part) for part in version.split("."))


def newest(versions: Iterable[str]) -> str:
    return max(versions, key=version_key)


@dataclass(frozen=True, slots=True)
class VersionRate:
    """How a version does at a domain: among its newest pages, and in the last seven days."""

    domain: str
    parser: str
    version: str
    role: str
    recent_pages: int
    recent_good: int
    week_pages: int
    week_good: int
