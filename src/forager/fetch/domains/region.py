"""Regions: where workers are, and what is tied to some of them."""

from __future__ import annotations

import re

from forager.errors import InvalidInput

_REGION = re.compile("[a-z0-9-]{1,32}")


def check_region(region: str | None) -> None:
    """Refuse what is no short name; None, which is no region, is one that can be set."""
    if region is not None and not _REGION.fullmatch(region):
        raise InvalidInput(
            f"{region[:40]!r} is not the name of a region",
            hint="Write it in 1 to 32 small letters, digits and hyphens, as eu or us-east-1.",
        )
