"""Start a crawl of a site, or of the bundled site."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, get_origin
from uuid import UUID

from pydantic.fields import FieldInfo

from forager.api.problems import problem_of
from forager.crawl import admission
from forager.crawl.frontier.scope import ScopeMode
from forager.crawl.options import CrawlChoices, CrawlOptions, Strategy, crawl_options
from forager.crawl.preview import CrawlPreview
from forager.demo.server import demo_site
from forager.errors import ErrorKind, ForagerError, GiveUp, InvalidInput
from forager.fetch.response import is_public_header
from forager.jobs.queue import Enqueued
from forager.settings.crawling import RenderMode
from forager.web.errors import message_of
from forager.web.forms import Form, Submitted
from forager.web.navigation import as_place
from forager.web.page import Done, WebPage, action, new_router, page
from forager.web.visit import AdminVisit, OperatorVisit

# always visible; the other options are collapsed
MAIN = ("strategy", "scope", "max_pages", "max_depth", "max_time")
# only an administrator may set these
RESTRICTED = ("allow_private", "folder")
LABELS: dict[StrEnum, str] = {
    Strategy.SITE: "Links and sitemaps",
    Strategy.SITEMAP: "Sitemaps only",
    Strategy.LIST: "These URLs only",
    Strategy.SINGLE: "One page",
    Strategy.LLMS: "llms.txt and its links",
    ScopeMode.HOST: "Host",
    ScopeMode.DOMAIN: "Domain and subdomains",
    ScopeMode.PREFIX: "Path prefix",
    RenderMode.AUTO: "Where needed",
    RenderMode.ALWAYS: "Always",
    RenderMode.NEVER: "Never",
}
TURNED_OFF = {"documents": ("Archive only", "No sections, no search index.")}


class InputKind(StrEnum):
    """How an option is entered."""

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
    # the value of a checked box
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
        """A stored value as the input shows it, without secret headers."""
        match self.kind:
            case InputKind.TICK:
                return "yes" if value == self.ticked else ""
            case InputKind.LINES:
                return "\n".join(value)
            case InputKind.HEADERS:
                public = [
                    f"{name}: {text}" for name, text in value.items() if is_public_header(name)
                ]
                return "\n".join(public)
            case _:
                return str(value)


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
        is_whole=float not in getattr(field.annotation, "__args__", (field.annotation,)),
    )


def _headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise InvalidInput(f"headers: {line[:100]!r} is not 'Name: value'")
        headers[name.strip()] = value.strip()
    return headers


router = new_router()

FIELDS = tuple(_form_field(name, field) for name, field in CrawlChoices.model_fields.items())
OPTIONS = frozenset(["urls", *(field.option for field in FIELDS)])
# a line of a message about an option
_OPTION = re.compile(r"(?P<name>\w+)(?:\.[\w.]+)?:? (?P<text>.*)")


@page(router, "/new-crawl")
async def form_page(visit: OperatorVisit, job: UUID | None = None) -> WebPage:
    """An empty form, or one with the settings of an earlier job."""
    if job is None:
        return _form_page(Form({}))
    earlier = await admission.get_job(visit.context, job)
    return _form_page(_filled(earlier.payload, source=earlier.source_id or ""))


def _form_page(
    given: Form, error: ForagerError | None = None, preview: CrawlPreview | None = None
) -> WebPage:
    """The form with its input, and errors beside the fields that they are about."""
    by_field, rest = _errors(error)
    rarely_used = [field for field in FIELDS if not field.is_main]
    return WebPage(
        "new_crawl.html",
        fields=FIELDS,
        given=given,
        errors=by_field,
        problem=rest,
        preview=preview,
        is_private=_is_refused_address(error) or given.checked("allow_private"),
        is_detailed=any(given.text(each.option) not in ("", each.default) for each in rarely_used),
    ).after(error)


def _is_refused_address(error: ForagerError | None) -> bool:
    return isinstance(error, GiveUp) and error.kind is ErrorKind.NOT_ALLOWED


def _errors(error: ForagerError | None) -> tuple[dict[str, str], str | None]:
    """Messages by input, and the message that belongs to none."""
    if error is None:
        return {}, None
    if _is_refused_address(error):
        return {"urls": message_of(problem_of(error, as_place))}, None
    found: dict[str, str] = {}
    name = ""
    for line in error.message.splitlines() if isinstance(error, InvalidInput) else ():
        option = _OPTION.fullmatch(line)
        if option is not None and option["name"] in OPTIONS:
            name = option["name"]
            found[name] = option["text"]
        elif name:  # some messages have several lines
            found[name] += f" {line}"
    return (found, None) if found else ({}, message_of(problem_of(error, as_place)))


def _filled(options: dict[str, Any], **more: str) -> Form:
    """The form with the options of a crawl."""
    fields = {"urls": ["\n".join(options.get("urls", []))]}
    fields |= {name: [text] for name, text in more.items()}
    for field in FIELDS:
        if (value := options.get(field.option)) is not None:
            fields[field.option] = [field.write(value)]
    return Form(fields)


@action(router, "/new-crawl")
async def start(visit: OperatorVisit, form: Submitted) -> Done | WebPage:
    try:
        options = crawl_options(_given(form))
        source, priority = form.optional("source"), form.number("priority") or 0
        return _started(
            await admission.start_crawl(visit.context, options, source=source, priority=priority)
        )
    except ForagerError as error:
        return _form_page(form, error)


@action(router, "/new-crawl/preview")
async def preview(visit: OperatorVisit, form: Submitted) -> WebPage:
    try:
        found = await admission.preview(visit.context, crawl_options(_given(form)))
    except ForagerError as error:
        return _form_page(form, error)
    return _form_page(form, preview=found)


@action(router, "/new-crawl/demo")
async def start_demo(visit: AdminVisit, form: Submitted) -> Done:
    demo: DemoSite = visit.request.app.state.demo
    return _started(
        await admission.start_crawl(visit.context, demo.options(), source=SOURCE, priority=0)
    )


def _started(asked: Enqueued) -> Done:
    name = asked.job.source_id
    text = f"Crawl of {name} started." if asked.created else f"{name} is already being crawled."
    return Done(text, to=f"/jobs/{asked.job.id}", leaves=True)


def _given(form: Form) -> dict[str, Any]:
    """Start URLs and options of the form."""
    given: dict[str, Any] = {"urls": form.lines("urls")}
    for field in FIELDS:
        if (value := field.read(form)) is not None:
            given[field.option] = value
    return given


SOURCE = "demo"
# slow enough to watch
DELAY = 0.4


class DemoSite:
    """The bundled site, served from its first use until the process ends."""

    def __init__(self) -> None:
        self._serving = ExitStack()

    @cached_property
    def url(self) -> str:
        return self._serving.enter_context(demo_site())

    def options(self) -> CrawlOptions:
        return crawl_options(
            {"urls": [self.url], "allow_private": True, "delay": DELAY, "concurrency": 1}
        )

    def close(self) -> None:
        self._serving.close()
