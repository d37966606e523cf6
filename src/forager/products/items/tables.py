"""Tables that users supply as CSV: with a header, in any order of columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from decimal import Decimal, InvalidOperation

from forager.errors import InvalidInput

_LARGEST = Decimal(10) ** 9


def read_table(
    text: str, columns: Collection[str], *, required: Collection[str], limit: int
) -> Iterator[tuple[int, dict[str, str]]]:
    """The line number and the values of each row; raises InvalidInput for an invalid file."""
    separator = ";" if ";" in text.partition("\n")[0] else ","
    lines = csv.reader(io.StringIO(text.removeprefix("\ufeff")), delimiter=separator, strict=True)
    try:
        header = [name.strip().lower() for name in next(lines, [])]
        if missing := [name for name in required if name not in header]:
            known = ", ".join(columns)
            raise InvalidInput(
                f"the file has no column {missing[0]!r}", hint=f"The first line names: {known}."
            )
        for values in lines:
            if lines.line_num > limit:
                raise InvalidInput(f"the file has more than {limit:,} lines")
            if any(value.strip() for value in values):
                row = dict(zip(header, (value.strip() for value in values), strict=False))
                yield lines.line_num, {name: row.get(name, "") for name in columns}
    except csv.Error:
        raise InvalidInput(f"line {lines.line_num} is not valid CSV") from None


def amount_in(line: int, text: str, *, least: str = "0.0001") -> Decimal:
    """A positive amount with a decimal point."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(0)
    if not (value.is_finite() and Decimal(least) <= value < _LARGEST):
        raise InvalidInput(f"line {line}: {text[:20]!r} is not an amount", hint="Such as 49.90.")
    return value
