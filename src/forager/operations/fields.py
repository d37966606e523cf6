"""What a field of a model declares, also inside its type: `Annotated[int, Field(ge=1)] | None`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, get_args

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo


class FromFile:
    """Marks a secret: the command line reads it from a file, because others see command lines."""


class FoundBy:
    """Marks an ID that commands also take in another form: `find` returns the ID of a text."""

    def __init__(self, find: Callable[[Any, str], Awaitable[Any]], form: str) -> None:
        self.find = find
        self.form = form


def parts_of(annotation: Any) -> Iterator[Any]:
    """A type, the types inside it, and what is annotated to them."""
    yield annotation
    for part in get_args(annotation):
        yield from parts_of(part)


def declared_in(field: FieldInfo) -> Iterator[FieldInfo]:
    """The field, and the fields that are annotated to the types inside it."""
    yield field
    yield from (part for part in parts_of(field.annotation) if isinstance(part, FieldInfo))


def description_of(field: FieldInfo) -> str:
    """The description of an input, or an empty text."""
    return next((each.description for each in declared_in(field) if each.description), "")


def accepts_text(field: FieldInfo) -> bool:
    """Whether values may also be written as text, such as 10% for 0.1."""
    parts = (*field.metadata, *parts_of(field.annotation))
    return any(isinstance(part, BeforeValidator) for part in parts)


def is_from_file(field: FieldInfo) -> bool:
    """Whether the command accepts `@FILE` for an input."""
    parts = (*field.metadata, *parts_of(field.annotation))
    return any(isinstance(part, FromFile) for part in parts)


def finder_of(field: FieldInfo) -> FoundBy | None:
    """How the command finds the value of an input by a name."""
    return next((each for each in field.metadata if isinstance(each, FoundBy)), None)
