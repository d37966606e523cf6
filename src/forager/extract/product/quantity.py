"""Quantities in texts, for prices per kilogram, liter or piece."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

# by written unit: the unit of comparison, and how many of it
_UNITS = {
    "kg": ("kg", "1"), "g": ("kg", "0.001"), "gr": ("kg", "0.001"), "mg": ("kg", "0.000001"),
    "lb": ("kg", "0.45359237"), "lbs": ("kg", "0.45359237"), "oz": ("kg", "0.028349523125"),
    "l": ("l", "1"), "liter": ("l", "1"), "litre": ("l", "1"), "ltr": ("l", "1"),
    "dl": ("l", "0.1"), "cl": ("l", "0.01"), "ml": ("l", "0.001"),
}  # fmt: skip
_PIECES = (
    "pieces|piece|pcs|pc|pack|count|ct|capsules|tablets|tabs|pods|bags|sheets|rolls"
    "|stück|stk|st|pièces|pezzi|piezas|stuks|szt"
)
_PIECE_WORDS = frozenset(_PIECES.split("|"))
_LEAST, _LARGEST = Decimal(10) ** -9, Decimal(10) ** 6
_ROUNDED = Decimal("0.02")
_NUMBER = r"\d{1,5}(?:[.,]\d{1,3})?"
_QUANTITY = re.compile(
    rf"(?<![\w.,-])(?:(?P<times>\d{{1,4}})\s?(?:x|×|\*)\s?)?(?P<number>{_NUMBER})\s?"
    rf"(?:(?P<unit>{'|'.join(sorted(_UNITS, key=len, reverse=True))})|(?P<pieces>{_PIECES}))"
    r"(?![\w/-])",
    re.IGNORECASE,
)
_PACK = re.compile(r"(?:pack of|set of|(?:\d{1,3}er-?)pack)\s*(\d{1,4})", re.IGNORECASE)
# of phones: 5G
_NETWORKS = frozenset("23456")
_MAX_NAME = 500


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount in kg, l or pieces."""

    amount: Decimal
    unit: str

    @classmethod
    def of(cls, number: Decimal, written: str) -> Quantity | None:
        """A number of a written unit; None if the unit is unknown."""
        if written.lower() in _PIECE_WORDS:
            unit, factor = "piece", "1"
        elif (known := _UNITS.get(written.lower())) is not None:
            unit, factor = known
        else:
            return None
        amount = number * Decimal(factor)
        return cls(amount, unit) if _LEAST <= amount < _LARGEST else None

    @classmethod
    def parse(cls, text: str) -> Quantity | None:
        """The inverse of `str`."""
        number, _, unit = text.partition(" ")
        plain = re.fullmatch(r"\d{1,9}(?:\.\d{1,15})?", number)
        return cls.of(Decimal(number), unit) if plain else None

    def __str__(self) -> str:
        return f"{self.amount.normalize():f} {self.unit}"

    def unit_price(self, price: Decimal) -> Decimal:
        return (price / self.amount).quantize(Decimal("0.01"))

    def agrees(self, other: Quantity) -> bool:
        """Whether both are the same, except for rounding."""
        if self.unit != other.unit:
            return False
        return abs(self.amount - other.amount) <= _ROUNDED * max(self.amount, other.amount)


def quantity_in(text: str) -> Quantity | None:
    """The quantity that a text states; None without one, or with several that differ."""
    quantity, packs = single(quantities_in(text)), _PACK.findall(text[:_MAX_NAME])
    if quantity and len(packs) == 1 and int(packs[0]) and quantity.unit != "piece":
        return Quantity(quantity.amount * int(packs[0]), quantity.unit)
    return quantity


def quantities_in(text: str) -> list[Quantity]:
    return [q for match in _QUANTITY.finditer(text[:_MAX_NAME]) if (q := _quantity(match))]


def single(found: Collection[Quantity]) -> Quantity | None:
    """The quantity on which all agree; a weight or volume says more than a number of pieces."""
    measured = [each for each in found if each.unit != "piece"] or [*found]
    return measured[0] if measured and all(map(measured[0].agrees, measured)) else None


def offered_quantity(name: str, stated: str | None) -> Quantity | None:
    """The quantity in the name of an offer, or that its page states; None if they contradict."""
    named, page = quantity_in(name), Quantity.parse(stated or "")
    if named is None or page is None:
        return named or page
    if (named.unit == "piece") != (page.unit == "piece"):
        return page if named.unit == "piece" else named
    return named if named.agrees(page) else None


def _quantity(match: re.Match[str]) -> Quantity | None:
    if match["unit"] == "G" and match["number"] in _NETWORKS:
        return None
    number = Decimal(match["number"].replace(",", ".")) * int(match["times"] or 1)
    return Quantity.of(number, match["pieces"] or match["unit"])
