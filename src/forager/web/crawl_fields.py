"""Form fields of a crawl, derived from the fields of `CrawlChoices`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, get_origin

from pydantic.fields import FieldInfo

from forager.crawl.frontier.scope import ScopeMode
from forager.crawl.options import CrawlChoices, Strategy
from forager.errors import InvalidInput
from forager.web.forms import Form

# shown at once; the rest is folded away
MAIN = ("strategy", "scope", "max_pages", "max_depth", "max_time")
# only an administrator may set these
RESTRICTED = ("allow_private",)
LABELS: dict[StrEnum, str] = {
    Strategy.SITE: "Links and sitemaps",
    Strategy.SITEMAP: "Sitemaps only",
    Strategy.LIST: "These URLs only",
    Strategy.SINGLE: "One page",
    Strategy.LLMS: "llms.txt and its links",
    ScopeMode.HOST: "Host",
    ScopeMode.DOMAIN: "Domain and subdomains",
    ScopeMode.PREFIX: "Path prefix",
}
TURNED_OFF = {"documents": ("Archive only", "No sections, no search index.")}


class InputKind(StrEnum):
    CHOICE = "choice"
    NUMBER = "number"
    TEXT = "text"
    LINES = "lines"
    HEADERS = "headers"
    TICK = "tick"


@dataclass(frozen=True, slots=True)
class FormField:
    """One option of a crawl as an input of the form."""

    option: str
    title: str
    hint: str
    kind: InputKind
    choices: tuple[tuple[str, str], ...] = ()
    # the value that a tick stands for
    ticked: bool = True
    default: str = ""
    least: float | None = None
    most: float | None = None
    is_whole: bool = True

    @property
    def is_main(self) -> bool:
        return self.option in MAIN

    @property
    def is_restricted(self) -> bool:
        return self.option in RESTRICTED

    def read(self, form: Form) -> Any:
        """The value that was sent; None for an empty input, which means the default."""
        match self.kind:
            case InputKind.TICK:
                return self.ticked if form.checked(self.option) else None
            case InputKind.LINES:
                return form.lines(self.option) or None
            case InputKind.HEADERS:
                return _headers(form.lines(self.option)) or None
            case _:
                return form.text(self.option) or None

    def write(self, value: Any) -> str:
        """A stored value as the input shows it; headers are secret and stay empty."""
        match self.kind:
            case InputKind.TICK:
                return "yes" if value == self.ticked else ""
            case InputKind.LINES:
                return "\n".join(value)
            case InputKind.HEADERS:
                return ""
            case _:
                return str(value)


def crawl_fields() -> tuple[FormField, ...]:
    return tuple(_form_field(name, field) for name, field in CrawlChoices.model_fields.items())


def _form_field(name: str, field: FieldInfo) -> FormField:
    title, hint = field.title or name, field.description or ""
    if field.annotation is bool:
        if field.default:
            title, hint = TURNED_OFF[name]
        return FormField(name, title, hint, InputKind.TICK, ticked=not field.default)
    if name == "headers":
        return FormField(name, title, f"{hint} One per line: Name: value.", InputKind.HEADERS)
    if get_origin(field.annotation) is tuple:
        return FormField(name, f"{title} (one per line)", hint, InputKind.LINES)
    if isinstance(field.annotation, type) and issubclass(field.annotation, StrEnum):
        choices = tuple((each.value, LABELS[each]) for each in field.annotation)
        return FormField(name, title, "", InputKind.CHOICE, choices, default=field.default.value)
    return _number_or_text(name, field, title, hint)


def _number_or_text(name: str, field: FieldInfo, title: str, hint: str) -> FormField:
    limits = [(getattr(each, "ge", None), getattr(each, "le", None)) for each in field.metadata]
    if not limits:
        return FormField(name, title, hint, InputKind.TEXT)
    return FormField(
        name,
        title,
        hint,
        InputKind.NUMBER,
        default="" if field.default is None else f"{field.default:g}",
        least=next((least for least, _ in limits if least is not None), None),
        most=next((most for _, most in limits if most is not None), None),
        is_whole=float not in _types(field.annotation),
    )


def _types(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__args__", (annotation,))


def _headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise InvalidInput(f"{line[:100]!r} is not 'Name: value'")
        headers[name.strip()] = value.strip()
    return headers
