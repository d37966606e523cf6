"""A parser of a small shop in three versions; loaded by its file, as a user's would be."""

from __future__ import annotations

import time
from decimal import Decimal

from forager.parsers.parser import ABSENT, Absent, SiteParser

PATTERNS = ("kiosk.example/item/*", "127.0.0.1/item/*")


class KioskParser(SiteParser):
    name = "kiosk"
    version = "1"
    patterns = PATTERNS

    def product_name(self) -> str | None:
        return self.text("h1")

    def price(self) -> Decimal | None:
        return self.amount(".now")

    def sku(self) -> str | Absent | None:
        return self.attribute("[data-item]", "data-item")


class KioskParser2(KioskParser):
    """Knows where the brand is, takes the crossed-out price, and has lost the number."""

    version = "2"

    def price(self) -> Decimal | None:
        return self.amount(".was", ".now")

    def sku(self) -> Absent:
        return ABSENT

    def brand(self) -> str | None:
        return self.text(".maker")


class KioskParser10(KioskParser):
    """Gets stuck at some pages, and breaks at a field of others."""

    version = "10"

    def brand(self) -> str | None:
        if self.text(".slow"):
            time.sleep(600)
        raise KeyError("maker")
