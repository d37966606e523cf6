"""Flags derived from the fields of a model: the body of an API call, or the options of a crawl."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from forager.amounts import parse_duration
from forager.cli.output import read_input
from forager.errors import InvalidInput
from forager.operations.fields import accepts_text, declared_in, description_of, is_from_file

# removes a value that was set
DEFAULT = "default"
# a larger limit only guards the database: nothing to show in a help text
SHOWN_LIMIT = 1_000_000
MAX_SECRET = 1000


class ModelFlags:
    """One flag per field, with the help, type and limits that the field declares.

    A command with a parameter that is a model has these flags. It gets the model, or the result of
    `to`, which may refuse it before anything else is done. `own` replaces derived declarations: by
    the text of a flag, or by an option or argument; `arguments` have no flag. The value `default`
    sets a `removable` field to None.
    """

    def __init__(
        self,
        model: type[BaseModel],
        *,
        removable: bool | Collection[str] = False,
        to: Callable[[Any], Any] = lambda model: model,
        without: Collection[str] = (),
        arguments: Collection[str] = (),
        **own: Any,
    ) -> None:
        self._model = model
        self._to = to
        self._fields = {n: f for n, f in model.model_fields.items() if n not in without}
        self._removable = set(self._fields if removable is True else removable or ())
        self._arguments = arguments
        self._own = own

    def parameters(self) -> list[inspect.Parameter]:
        return [self._parameter(name, field) for name, field in self._fields.items()]

    def value(self, arguments: dict[str, Any]) -> Any:
        """Take the values of the flags out of the arguments; defaults are not given."""
        source_of = arguments["context"].get_parameter_source
        taken = {name: arguments.pop(name) for name in self._fields}
        given = {
            name: self._value(name, value)
            for name, value in taken.items()
            if source_of(name).name != "DEFAULT"
        }
        # services check values, and explain what is wrong with them in more detail than a model
        return self._to(self._model.model_construct(set(given), **given))

    def _value(self, name: str, value: Any) -> Any:
        kind = _typed(self._fields[name])
        if self._is_turned_off(name):
            return not value
        if is_from_file(self._fields[name]):
            return None if value == DEFAULT else _text_of(Path(value))
        if get_origin(kind) is dict:
            return parse_headers(value)
        if name in self._removable and DEFAULT in (value if isinstance(value, list) else [value]):
            return self._removed(name, value) if isinstance(value, list) else None
        if kind in PARSERS:
            return PARSERS[kind](value)
        return self._number(name, kind, value) if kind in (int, float) else value

    def _removed(self, name: str, values: list[Any]) -> list[Any]:
        if any(value != DEFAULT for value in values):
            flag = self._own.get(name, f"--{_dashed(name)}")
            raise InvalidInput(f"{flag} takes either `{DEFAULT}`, which removes all, or values")
        return []

    def _number(self, name: str, kind: Callable[[Any], float], value: Any) -> float:
        try:
            return kind(value)
        except ValueError:
            flag = f"--{_dashed(name)}"
            raise InvalidInput(f"{flag} needs a number or `{DEFAULT}`, not {value!r}") from None

    def _is_turned_off(self, name: str) -> bool:
        """Whether the flag turns something off that is on by default."""
        return name not in self._removable and self._fields[name].default is True

    def _parameter(self, name: str, field: FieldInfo) -> inspect.Parameter:
        kind, default, how = self._type(name, field)
        derived = how.pop("flag", f"--{_dashed(name)}")
        own = self._own.get(name, derived)
        if name in self._arguments:
            how["metavar"] = _metavar(name, kind)
            own = typer.Argument(help=self._help(name, field), **how)
        elif isinstance(own, str):
            own = typer.Option(own, help=self._help(name, field), **how)
        return inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is PydanticUndefined else default,
            annotation=Annotated[kind, copy(own)],
        )

    def _help(self, name: str, field: FieldInfo) -> str:
        """The description of the field, and what the command line adds to it."""
        kind = _plain_type(field.annotation)
        texts = [description_of(field)]
        if get_origin(kind) in (list, tuple) and name not in self._arguments:
            texts.append("Repeatable.")
        if kind is datetime:
            texts.append("An age such as 2d is a time as well.")
        if is_from_file(field):
            texts.append("Read from the file; - is standard input.")
        elif name in self._removable and kind is not bool:
            texts.append(f"`{DEFAULT}` removes the setting.")
        return " ".join(texts)

    def _type(self, name: str, field: FieldInfo) -> tuple[Any, Any, dict[str, Any]]:
        """The type and default of a flag, and options of its declaration."""
        kind = _typed(field)
        if is_from_file(field):
            more = f"|{DEFAULT}" if name in self._removable else ""
            return str | None, None, {"flag": f"--{_dashed(name)}-file", "metavar": f"FILE{more}"}
        if kind is bool:
            if name in self._removable or field.default is None:
                flag = _dashed(name)
                return bool | None, None, {"flag": f"--{flag}/--no-{flag}"}
            no = "no-" if self._is_turned_off(name) else ""
            return bool, False, {"flag": f"--{no}{_dashed(name)}"}
        if get_origin(kind) is dict:
            one = {"flag": f"--{_dashed(name).removesuffix('s')}", "metavar": "'NAME: VALUE'"}
            return list[str], PydanticUndefined if field.is_required() else [], one
        if get_origin(kind) in (list, tuple):
            item = _plain_type(get_args(kind)[0])
            if name in self._removable:
                return list[str] | None, None, {"metavar": f"TEXT|{DEFAULT}"}
            item = item if item is int or _is_enum(item) else str
            if field.is_required():
                return list[item], PydanticUndefined, {}  # type: ignore[valid-type]
            return list[item] | None, None, {}  # type: ignore[valid-type]
        if name in self._removable:
            return str | None, None, {"metavar": f"{_example(kind, field)}|{DEFAULT}"}
        if kind not in (int, float) and not _is_enum(kind):
            return str | None, field.default, {"metavar": METAVARS.get(kind)}
        optional = kind | None if field.default is None else kind
        return optional, field.default, {} if _is_enum(kind) else _limits(field)


def given_values(model: BaseModel) -> dict[str, Any]:
    """The values of the given flags, by the names of the fields."""
    return {name: getattr(model, name) for name in model.model_fields_set}


def flags_of_model(annotation: Any) -> ModelFlags | None:
    """The flags of a parameter, if its annotation is a model or has flags of one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return ModelFlags(annotation)
    added = getattr(annotation, "__metadata__", ())
    return next((each for each in added if isinstance(each, ModelFlags)), None)


def amount_of(text: str) -> Decimal:
    try:
        return Decimal(text.strip()[:40])
    except InvalidOperation:
        raise InvalidInput(f"{text[:40]!r} is not a number", hint="Write it as 49.90.") from None


def moment(text: str | None) -> datetime | None:
    """Parse a time, or an age such as 2d; a time without a zone is in UTC."""
    if text is None:
        return None
    with suppress(ValueError):
        at = datetime.fromisoformat(text.strip())
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    try:
        return datetime.now(UTC) - parse_duration(text)
    except InvalidInput:
        raise InvalidInput(
            f"{text[:60]!r} is neither a time nor an age",
            hint="Write it as 2d, 12h, 90min, 2026-01-31 or 2026-01-31T12:00Z.",
        ) from None


PARSERS: dict[Any, Callable[[str], Any]] = {Decimal: amount_of, datetime: moment}
METAVARS = {Decimal: "AMOUNT", datetime: "2d|2026-01-31"}


def parse_headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise typer.BadParameter(f"{line!r} is not 'Name: value'", param_hint="--header")
        headers[name.strip()] = value.strip()
    return headers


def _typed(field: FieldInfo) -> Any:
    """The type of what is typed for a field."""
    return str if accepts_text(field) else _plain_type(field.annotation)


def _plain_type(annotation: Any) -> Any:
    """A type without None and without what Annotated adds."""
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        return _plain_type(kinds[0])
    if get_origin(annotation) is Annotated:
        return _plain_type(get_args(annotation)[0])
    return annotation


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, StrEnum)


def _example(kind: Any, field: FieldInfo) -> str:
    if _is_enum(kind):
        return "|".join(kind)
    examples = [text for each in declared_in(field) for text in each.examples or ()]
    return str(examples[0]) if examples else "N" if kind in (int, float) else "TEXT"


def _limits(field: FieldInfo) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for each in (limit for declared in declared_in(field) for limit in declared.metadata):
        if (least := getattr(each, "ge", None)) is not None:
            limits["min"] = least
        if (most := getattr(each, "le", SHOWN_LIMIT)) < SHOWN_LIMIT:
            limits["max"] = most
    return limits


def _text_of(path: Path) -> str:
    try:
        return read_input(path, MAX_SECRET).decode("ascii").strip()
    except UnicodeDecodeError:
        raise InvalidInput("a secret consists of ASCII characters") from None


def _metavar(name: str, kind: Any) -> str:
    if get_origin(_plain_type(kind)) is list:
        name = singular(name)
    return name.removesuffix("_id").upper()


def is_list(field: FieldInfo) -> bool:
    return get_origin(_plain_type(field.annotation)) is list


def singular(name: str) -> str:
    return name if name.endswith("us") else name.removesuffix("s")


def _dashed(name: str) -> str:
    return name.replace("_", "-")
