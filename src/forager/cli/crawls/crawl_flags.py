"""Command-line flags of a crawl, derived from the fields of `CrawlChoices`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from forager.cli.options import AllowPrivate, option, with_signature
from forager.crawl.options import CrawlChoices

# typer cannot take a mapping: each header is a separate flag
HEADER = "header"
NO = "no_"
# an option that is on by default is a flag that turns it off
TURNED_OFF = {"documents": "Keep only the archive and the ledger: no sections, no search."}
# a larger limit only guards the database: nothing to show in a help text
SHOWN_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options of a single request."""

    user_agent: str | None = option("User agent to send.", show_default="setting")
    header: list[str] | None = option("Send a header, 'Name: value' (repeatable).")
    proxy: str | None = option("Fetch through this http://, https:// or socks5:// proxy.")
    allow_private: AllowPrivate = False

    def payload(self, url: str) -> dict[str, Any]:
        """The options of a crawl of this URL alone."""
        return {
            "urls": [url],
            "strategy": "single",
            "user_agent": self.user_agent,
            "headers": parse_headers(self.header or []),
            "proxy": self.proxy,
            "allow_private": self.allow_private,
        }


def with_crawl_flags(command: Callable[..., None], *, after: str) -> Callable[..., None]:
    """Give a command one flag per crawl option; it receives those given as `options`."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    place = [parameter.name for parameter in own].index(after) + 1
    kept = [parameter for parameter in own if parameter.name != "options"]
    flags = list(_flags())

    def run(**given: Any) -> None:
        values = {flag.name: given.pop(flag.name) for flag in flags}
        source_of = given["context"].get_parameter_source
        chosen = {name: values[name] for name in values if source_of(name).name != "DEFAULT"}
        command(**given, options=_payload(chosen))

    return with_signature(run, command, [*kept[:place], *flags, *kept[place:]])


def parse_headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise typer.BadParameter(f"{line!r} is not 'Name: value'", param_hint="--header")
        headers[name.strip()] = value.strip()
    return headers


def _flags() -> Iterator[inspect.Parameter]:
    for name, field in CrawlChoices.model_fields.items():
        if name == "headers":
            yield _flag(
                HEADER, list[str] | None, None, help="Send a header, 'Name: value' (repeatable)."
            )
        elif field.annotation is bool:
            yield _switch(name, field)
        elif get_origin(field.annotation) is tuple:
            help_ = f"{field.description} Repeatable."
            yield _flag(name, list[str] | None, None, help=help_)
        else:
            yield _value(name, field)


def _switch(name: str, field: FieldInfo) -> inspect.Parameter:
    """A flag that turns an option on, or off if it is on by default."""
    if not field.default:
        return _flag(name, bool, False, f"--{_dashed(name)}", help=field.description)
    return _flag(NO + name, bool, False, f"--no-{_dashed(name)}", help=TURNED_OFF[name])


def _value(name: str, field: FieldInfo) -> inspect.Parameter:
    kind: Any = _plain_type(field.annotation)
    limits = _limits(field) if kind in (int, float) else {}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _flag(name, kind, field.default, help=field.description)
    optional = kind if field.default is not None else kind | None
    return _flag(name, optional, field.default, help=field.description, **limits)


def _plain_type(annotation: Any) -> Any:
    if isinstance(annotation, UnionType) or get_origin(annotation) is not None:
        return _plain_type(get_args(annotation)[0])
    return annotation


def _limits(field: FieldInfo) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for each in field.metadata:
        if (least := getattr(each, "ge", None)) is not None:
            limits["min"] = least
        if (most := getattr(each, "le", SHOWN_LIMIT)) < SHOWN_LIMIT:
            limits["max"] = most
    return limits


def _flag(name: str, kind: Any, default: Any, *declared: str, **how: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, typer.Option(*declared, **how)],
    )


def _payload(chosen: dict[str, Any]) -> dict[str, Any]:
    """Options by the names of the fields."""
    payload: dict[str, Any] = {}
    for name, value in chosen.items():
        if name == HEADER:
            payload["headers"] = parse_headers(value)
        elif name.startswith(NO):
            payload[name.removeprefix(NO)] = False
        else:
            payload[name] = value
    return payload


def _dashed(name: str) -> str:
    return name.replace("_", "-")
