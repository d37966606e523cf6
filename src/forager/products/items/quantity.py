"""The quantity in the name of a product, for prices per kilogram, liter or piece."""

from __future__ import annotations

import re
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

    def unit_price(self, price: Decimal) -> Decimal:
        return (price / self.amount).quantize(Decimal("0.01"))


def quantity_in(name: str) -> Quantity | None:
    """The quantity that a name states; None without one, or with several that differ."""
    found = {q for match in _QUANTITY.finditer(name[:_MAX_NAME]) if (q := _quantity(match))}
    measured = [each for each in found if each.unit != "piece"] or [*found]
    if len(measured) != 1:
        return None
    [quantity], packs = measured, _PACK.findall(name[:_MAX_NAME])
    if len(packs) == 1 and int(packs[0]) and quantity.unit != "piece":
        return Quantity(quantity.amount * int(packs[0]), quantity.unit)
    return quantity


def _quantity(match: re.Match[str]) -> Quantity | None:
    if match["unit"] == "G" and match["number"] in _NETWORKS:
        return None
    number = Decimal(match["number"].replace(",", ".")) * int(match["times"] or 1)
    unit, factor = ("piece", "1") if match["pieces"] else _UNITS[match["unit"].lower()]
    amount = number * Decimal(factor)
    return Quantity(amount, unit) if amount > 0 else None
