"""Models of inputs and answers: their base classes, and the types that they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from types import MappingProxyType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    Self,
    TypedDict,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from forager.amounts import amount_text, parse_every
from forager.db.cursor import MAX_LIST, Page
from forager.errors import InvalidInput
from forager.settings.values import LARGEST_BIGINT as LARGEST_BIGINT
from forager.settings.values import LARGEST_INT as LARGEST_INT
from forager.settings.values import PlainText as PlainText
from forager.validation import matches


def interval_text(seconds: float | None) -> str:
    """An interval as it can be given: 21600 as 6h."""
    if seconds is None:
        return ""
    for length, unit in ((604800, "w"), (86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def _interval_out(value: Any) -> Any:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return interval_text(seconds) if isinstance(seconds, int | float) else seconds


def _without_secrets(payload: dict[str, Any]) -> dict[str, Any]:
    """The options of a crawl; its sealed secrets are of use only to its runner."""
    return {name: value for name, value in payload.items() if name != "sealed"}


def _assume_utc(at: datetime) -> datetime:
    try:
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is out of range") from None


def _interval(text: str) -> str:
    try:
        parse_every(text)
    except InvalidInput as error:
        raise ValueError(f"{error.message}. {error.hint or ''}".strip()) from None
    return text


# money and ratings are text, so that no digit is lost
Amount = Annotated[
    str,
    BeforeValidator(lambda value: amount_text(value) if isinstance(value, Decimal) else value),
    Field(examples=["49.90"]),
]
Currency = Annotated[
    PlainText,
    Field(pattern=matches("^[A-Za-z]{3}$", "three letters such as EUR"), examples=["EUR"]),
]
Hexadecimal = Annotated[str, BeforeValidator(bytes.hex)]
CrawlPayload = Annotated[dict[str, Any], BeforeValidator(_without_secrets)]
Interval = Annotated[str, BeforeValidator(_interval_out), Field(examples=["6h"])]
# a time in a request; without a zone it is in UTC
Moment = Annotated[datetime, AfterValidator(_assume_utc)]
Every = Annotated[PlainText, AfterValidator(_interval), Field(max_length=50, examples=["6h"])]


def interval_of(every: str | None) -> timedelta | None:
    """The interval of a validated `Every`."""
    return None if every is None else parse_every(every)


Url = Annotated[
    PlainText,
    Field(
        min_length=1,
        max_length=8000,
        description="URL, in any spelling.",
        examples=["https://example.org/"],
    ),
]
# IDs in one request
MAX_BULK = 1000
RowId = Annotated[int, Field(ge=1, le=LARGEST_BIGINT)]
RowIds = Annotated[
    list[RowId], Field(min_length=1, max_length=MAX_BULK, description="IDs; all by default.")
]
OnlyDomain = Annotated[
    PlainText,
    Field(
        min_length=1,
        max_length=300,
        description="Only this host, its subdomains, or the domain that covers it.",
    ),
]
Reason = Annotated[PlainText, Field(max_length=500, description="The reason.")]
Time = Annotated[datetime, AfterValidator(lambda at: at.astimezone(UTC))]


# types of rows, and their types in responses
_ANSWERED: dict[Any, Any] = {datetime: Time, Decimal: Amount, timedelta: Interval}
_CONTAINERS: dict[Any, Any] = {tuple: list, Sequence: list, Mapping: dict, frozenset: list}


def _answered(hint: Any) -> Any:
    kind, parts = get_origin(hint), tuple(map(_answered, get_args(hint)))
    if kind in (Union, UnionType):
        return reduce(or_, parts)
    if kind is None or kind is Literal:
        return _ANSWERED.get(hint, hint)
    return _CONTAINERS.get(kind, kind)[parts[0] if parts[1:] == (...,) else parts]


class _Joined:
    """The attributes of several values; the first value that has one counts."""

    def __init__(self, values: Sequence[Any], attributes: Mapping[str, Any]) -> None:
        self.__dict__ |= {"_values": values, **attributes}

    def __getattr__(self, name: str) -> Any:
        owner = next((each for each in self._values if hasattr(each, name)), None)
        return getattr(owner, name)


# fields that mean the same in every response; a declaration takes precedence. A response is about
# a {thing}: the name of its class in words, unless the class says otherwise
_SHARED = {
    "all_hold": "The hold on all tasks, if there is one.",
    "allow_private": "Whether private addresses are allowed.",
    "anchor": "Anchor of the heading in the page.",
    "attempt": "Number of the attempt.",
    "attempts": "Number of attempts so far.",
    "availability": "Availability, such as `in_stock`.",
    "base_url": "The first URL of the site.",
    "brand": "Brand of the product.",
    "category": "Category path of the product.",
    "completed_at": "When the {thing} was completed.",
    "created_at": "When the {thing} was created.",
    "currency": "Currency, as in ISO 4217.",
    "depth": "Number of links from a start URL.",
    "disabled_reason": "Why the {thing} is disabled.",
    "document": "The page.",
    "domain": "Name of the domain.",
    "due": "Number of due tasks.",
    "duration_ms": "Duration in milliseconds.",
    "error_kind": "Kind of error, such as `timeout`.",
    "error_message": "Message of the last error.",
    "error_type": "Type of error, such as `network`.",
    "example_url": "URL of the newest error of the group.",
    "fetched_at": "When the page was fetched.",
    "field": "Name of the field.",
    "final_url": "URL after redirects.",
    "finished_at": "When the attempt ended.",
    "gtin": "Global trade item number: GTIN, EAN or UPC.",
    "heading": "Heading of the section.",
    "held_domains": "Number of domains whose tasks are held.",
    "held_tasks": "Number of tasks held individually.",
    "host": "Name of the host.",
    "http_status": "HTTP status of the response.",
    "id": "ID of the {thing}.",
    "job_id": "ID of the job.",
    "language": "Language of the page.",
    "last_error": "Message of the last error.",
    "last_seen": "When the {thing} last reported.",
    "last_seen_at": "When the product was last seen.",
    "lease": "Number of the lease; it grows with each claim.",
    "list_price": "List price before a discount, as text.",
    "max_retries": "Maximum number of retries.",
    "name": "Name of the {thing}.",
    "next_crawl_at": "When the next visit is due.",
    "number": "Number of the generation.",
    "occurred_at": "When the {thing} occurred.",
    "oldest_due": "When the oldest due task became due.",
    "pages": "Number of pages.",
    "parser": "Name of the parser.",
    "parser_version": "Version of the parser.",
    "pid": "Process ID.",
    "position": "Position among its siblings, from 0.",
    "price": "Price, as text.",
    "price_changed_at": "When the price last changed.",
    "product_id": "ID of the product.",
    "progress_percentage": "Share of the known work that is done, in percent.",
    "proxy_id": "ID of the proxy.",
    "published_at": "When the {thing} was published.",
    "requests": "Number of requests.",
    "retry_count": "Retries so far.",
    "review_count": "Number of reviews.",
    "rule": "Name of the rule.",
    "scope": "Scope of the key.",
    "seconds": "Duration in seconds.",
    "section_id": "ID of the section.",
    "settled_at": "When the outcome was decided.",
    "sku": "Stock keeping unit of the shop.",
    "source": "Name of the source.",
    "stage": "Stage: `download` or `parse`.",
    "started_at": "When the {thing} started.",
    "state": "State of the {thing}.",
    "status": "Status of the {thing}.",
    "stop_reason": "Why the job stopped.",
    "task_id": "ID of the task.",
    "title": "Title of the page.",
    "total_pending": "Units of work left; for a crawl, URLs.",
    "unchanged": "Pages that have not changed.",
    "updated_at": "When the {thing} was last changed.",
    "url": "URL of the {thing}.",
    "user_id": "ID of the owner.",
    "version": "Version of the parser.",
    "via": "How the URL was found.",
    "why": "Why the task does not run now.",
    "worker_id": "ID of the worker.",
}


class ResponseModel(BaseModel):
    """A response, made field by field from the attributes of a value of a service.

    A view of a `row`, which is a dataclass, has the fields of the row except the `hidden` ones. It
    declares only those that differ; `about` describes the others. Fields that mean the same in
    every response, such as `created_at`, are described once, in `_SHARED`, with the `thing` that
    the response is about:

        class Alarm(ResponseModel, row=AlarmRow, thing="alarm", about={"host": "Where it rang."}):
            state: AlarmState
    """

    model_config = ConfigDict(
        from_attributes=True,
        json_schema_serialization_defaults_required=True,
        validate_by_alias=True,
        validate_by_name=True,
    )

    def __init_subclass__(
        cls,
        row: type | None = None,
        hidden: Collection[str] = (),
        about: Mapping[str, str] = MappingProxyType({}),
        thing: str | None = None,
        **options: Any,
    ) -> None:
        super().__init_subclass__(**options)
        thing = thing or re.sub("(?<!^)(?=[A-Z])", " ", cls.__name__).lower()
        described = {name: text.format(thing=thing) for name, text in _SHARED.items()}
        declared = vars(cls).get("__annotations__", {})
        for name in declared.keys() & described.keys() - vars(cls).keys():
            setattr(cls, name, Field(description=described[name]))
        if row is not None:
            aliases = {getattr(vars(cls).get(name), "validation_alias", None) for name in declared}
            shown = {field.name for field in fields(row)} - aliases - set(hidden)
            hints = get_type_hints(row, include_extras=True).items()
            cls.__annotations__ = {
                name: Annotated[
                    _answered(hint), Field(description=about.get(name, described.get(name)))
                ]
                for name, hint in hints
                if name in shown
            } | declared

    @classmethod
    def of(cls, value: Any, *others: Any, **more: Any) -> Self:
        """The view of a value; other values and `more` have fields that it lacks."""
        is_whole = not (others or more)
        return cls.model_validate(value if is_whole else _Joined((value, *others), more))


class RequestModel(BaseModel):
    """The body of a request; an unknown field is an error, so that a typo is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def given(self) -> dict[str, Any]:
        """The values in the request; null is a value too."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def check(self) -> None:
        """Raise InvalidInput for values that do not fit together, before anything is opened."""


def example(**values: Any) -> ConfigDict:
    """The configuration of an order whose example can be sent as it is."""
    return ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [values]})


Item = TypeVar("Item")
Row = TypeVar("Row")

AFTER = "Return items after this cursor: the `next_cursor` of the page before."
MAX_CURSOR = 16_000


Limit = Annotated[int, Field(ge=1, le=MAX_LIST, description="Maximum number of items.")]
# the cursor of a short list that is read as a whole
Offset = Annotated[int, Field(ge=0, le=1_000_000, description=AFTER)]


class Paging(TypedDict):
    """Where a page of a list begins, and its length."""

    cursor: str | None
    limit: int


class Listed(BaseModel, Generic[Item]):
    """One page of a list."""

    items: list[Item] = Field(description="The items of this page.")
    next_cursor: str | None = Field(description="Cursor of the next page; null on the last page.")


def listed(page: Page[Row], view: Callable[[Row], Item]) -> Listed[Item]:
    """A page of a service, each row as its view."""
    return Listed(items=[view(row) for row in page.items], next_cursor=page.next_cursor)


def cut(found: Sequence[Row], offset: int, limit: int) -> Page[Row]:
    """A page of a short list that is read as a whole; the cursor is an offset."""
    more = len(found) > offset + limit
    return Page(list(found[offset : offset + limit]), str(offset + limit) if more else None)


class RemovedRow(ResponseModel):
    """What was removed."""

    id: int
