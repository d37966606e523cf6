"""Parsers of the market's shops whose page or price methods fail; loaded by their file."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

from forager.parsers.parser import SiteParser


class RaisingParser(SiteParser):
    """Corrects a price that the page's data states with tax; raises where it is not shown."""

    name = "raising"
    patterns = ("*/raising/*",)

    def price(self) -> Decimal | None:
        return Decimal(self.attribute("[data-net]", "data-net") or "missing")


class UntriedParser(SiteParser):
    """A first version that is wrong; nobody has rolled it out."""

    name = "untried"
    patterns = ("*/untried/*",)

    def price(self) -> Decimal:
        return Decimal("9.99")


class LateParser(SiteParser):
    """Corrects the price that the page's data states with tax, once it is rolled out."""

    name = "late"
    patterns = ("*/late/*",)

    def price(self) -> str | None:
        return self.attribute("[data-net]", "data-net")


class HangingParser(SiteParser):
    """Never returns on pages that say so."""

    name = "hanging"
    patterns = ("*/hanging/*",)

    def price(self) -> Decimal | None:
        while self.attribute("[data-hang]", "data-hang") == "yes":
            with suppress(Exception):
                sum(range(1_000))
        return self.decimal("data-net")

    def decimal(self, name: str) -> Decimal | None:
        value = self.attribute(f"[{name}]", name)
        return None if value is None else Decimal(value)
