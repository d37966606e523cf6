"""Submitted forms: fields by name, as plain text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends, Request

from forager.errors import InvalidInput
from forager.extract.text import storable
from forager.tasks.task import parse_every

MAX_FIELDS = 2000
MAX_BYTES = 1_000_000
LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Form:
    """Fields of a form or of a URL, as text; a method per type raises InvalidInput."""

    fields: dict[str, list[str]]

    def text(self, name: str) -> str:
        """The field without the space around it; empty if it was not sent."""
        return self.fields.get(name, [""])[0].strip()

    def optional(self, name: str) -> str | None:
        return self.text(name) or None

    def ids(self, name: str) -> list[int]:
        """The IDs of checked rows."""
        texts = self.texts(name)
        if not all(_is_number(text) and int(text) < 2**63 for text in texts):
            raise InvalidInput("an ID is not a number")
        return [int(text) for text in texts]

    def texts(self, name: str) -> list[str]:
        return [text.strip() for text in self.fields.get(name, []) if text.strip()]

    def lines(self, name: str) -> list[str]:
        return [line.strip() for line in self.text(name).splitlines() if line.strip()]

    def checked(self, name: str) -> bool:
        return bool(self.text(name))

    def interval(self, name: str) -> timedelta | None:
        return parse_every(self.text(name)) if self.text(name) else None

    def number(self, name: str, *, least: int = 0, most: int = LARGEST) -> int | None:
        """A whole number; None if the field is empty."""
        text = self.text(name)
        if not text:
            return None
        if not _is_number(text) or not least <= int(text) <= most:
            raise InvalidInput(f"{_words(name)} must be a whole number from {least:,} to {most:,}")
        return int(text)

    def amount(self, name: str, *, least: float = 0.0, most: float = 1e9) -> float | None:
        """A number; None if the field is empty."""
        text = self.text(name)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not least <= value <= most:  # also refuses what is no number at all
            raise InvalidInput(f"{_words(name)} must be a number from {least:,g} to {most:,g}")
        return value


def _is_number(text: str) -> bool:
    # Python refuses to read a number of thousands of digits
    return len(text) < 20 and text.isascii() and text.isdecimal()


def _words(name: str) -> str:
    return f"“{name.replace('_', ' ')}”"


def parse_form(body: bytes) -> Form:
    if len(body) > MAX_BYTES:
        raise InvalidInput("the form is too large", hint="Send less at once.")
    try:
        fields = parse_qs(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS
        )
    except ValueError:
        raise InvalidInput(f"the form has more than {MAX_FIELDS} fields") from None
    return Form({name: [storable(value) for value in values] for name, values in fields.items()})


async def _submitted(request: Request) -> Form:
    return parse_form(await request.body())


Submitted = Annotated[Form, Depends(_submitted)]
