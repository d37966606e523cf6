"""Tasks: URLs that are kept fresh, and what is asked of them."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AwareDatetime, Field, WithJsonSchema

from forager.api.actions import HintText, as_call
from forager.api.models import (
    LARGEST_BIGINT,
    MAX_BULK,
    Every,
    Interval,
    Order,
    PlainText,
    Time,
    View,
    example,
    interval_of,
)
from forager.errors import ErrorKind, InvalidInput
from forager.extract.text import storable
from forager.hints import Hint, Option, render
from forager.products.record import AttemptRecord
from forager.settings.crawling import RenderMode, parse_render
from forager.tasks import holds, task
from forager.tasks import service as tasks
from forager.tasks.dead_letters import LetterFilter
from forager.tasks.imports import request_of
from forager.tasks.lifecycle import TaskStatus
from forager.tasks.selection import Selection
from forager.tasks.task import Hold
from forager.tasks.tracking_request import BadLine, Terms, TrackRequest

MAX_TRACKED = 10_000

RowId = Annotated[int, Field(ge=1, le=LARGEST_BIGINT)]
Priority = Annotated[int, Field(ge=0, le=9, description="Higher runs first.")]
Popularity = Annotated[
    float,
    Field(allow_inf_nan=False, description="Breaks ties between tasks: higher runs first."),
]
Render = Annotated[
    RenderMode,
    Field(description="Render the page in a browser: if it has no price (auto), always, or never."),
]
Retries = Annotated[int, Field(ge=0, le=1000, description="Retries of a visit.")]
# Each is judged by itself: one that is wrong must not cost all the others.
TrackedItem = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "description": "A URL."},
                {
                    "type": "object",
                    "required": ["url"],
                    "properties": {
                        "url": {"type": "string"},
                        "priority": {"type": "integer", "minimum": 0, "maximum": 9},
                        "every": {"type": "string", "examples": ["6h"]},
                        "popularity": {"type": "number"},
                        "at": {"type": "string", "format": "date-time"},
                        "max_retries": {"type": "integer", "minimum": 0, "maximum": 1000},
                        "render": {"enum": ["auto", "always", "never"]},
                    },
                },
            ]
        }
    ),
]


class Task(View, row=task.Task, hidden=("domain_id",)):
    """One URL that is kept fresh; lengths of time are in seconds."""

    shown_status: str = Field(description="The state, or the hold on the task itself.")
    hold: Hold | None = Field(description="The hold on the task itself.")
    domain_hold: Hold | None = Field(description="The hold on its domain.")
    all_hold: Hold | None = Field(description="The hold on all tasks.")
    domain_alarm: str | None = Field(
        description="Why results of its domain are withheld: `gone`, `blocked` or `same_page`."
    )
    held_by: str | None = Field(description="Holds that keep it from running, the widest first.")
    failed_visits: int = Field(description="Visits in a row whose last retry failed.")
    every: Interval | None = Field(
        validation_alias="crawl_frequency", description="Interval set for this task."
    )
    adapted_every: Interval | None = Field(
        validation_alias="adapted_frequency", description="Interval adapted to price changes."
    )
    render: RenderMode | None = Field(description="Which visits use a browser; null: its domain's.")
    needs_browser: bool = Field(description="Whether its static response has no price.")


class TaskAttempt(View, row=AttemptRecord):
    """One attempt to fetch or to read a page."""


class TaskDetail(Task):
    """A task, when it comes next, why it does not run now, and its last attempts."""

    effective_every: Interval = Field(
        validation_alias="every", description="The interval in effect."
    )
    next_at: Time | None = Field(description="Null while it runs or waits for a decision.")
    why: HintText
    attempts: list[TaskAttempt]


class TrackOrder(Order):
    """What to keep fresh. The terms apply to items without their own."""

    model_config = example(
        items=[
            "https://lamps.example.org/desk-lamp",
            {"url": "https://lamps.example.org/floor-lamp", "priority": 8, "every": "6h"},
        ],
        every="1d",
    )

    items: list[TrackedItem] = Field(min_length=1, max_length=MAX_TRACKED)
    priority: Priority | None = None
    every: Every | None = Field(default=None, description="30m, 6h, 1d, 1w")
    popularity: Popularity | None = None
    at: AwareDatetime | None = Field(default=None, description="When the next visit is due.")
    max_retries: Retries | None = None
    render: Render | None = None
    allow_private: bool = Field(default=False, description="Allow private addresses (admin scope).")

    def terms(self) -> Terms:
        every = interval_of(self.every)
        return Terms(self.priority, every, self.popularity, self.at, self.max_retries, self.render)

    def requests(self) -> list[TrackRequest | BadLine]:
        texts = [
            item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            for item in self.items
        ]
        return [
            request_of(number, item, storable(text))
            for number, (item, text) in enumerate(zip(self.items, texts, strict=True))
        ]


class RefusedItem(View):
    """An item that cannot be tracked; the others are."""

    item: int = Field(description="Position in the list, from 0.")
    reason: str
    text: str

    @classmethod
    def build(cls, bad: BadLine) -> RefusedItem:
        return cls(item=bad.line, reason=render(bad.reason, as_call), text=storable(bad.text))


class TrackedTask(View):
    item: int = Field(description="Position of its URL in the list, from 0.")
    id: int
    url: str = Field(description="As given in the request.")


class TrackResult(View):
    """The result for each item."""

    added: int
    known: int = Field(description="URLs that are tracked already or repeated.")
    updated: int = Field(description="Number of existing tasks whose options changed.")
    bad: int
    tasks: list[TrackedTask]
    refused: list[RefusedItem]


class TaskChoice(Order):
    """Which tasks are meant: all of what is named must fit. All tasks only if that is said."""

    model_config = example(domain="shop.example.org")

    ids: list[RowId] = Field(default_factory=list, max_length=MAX_BULK)
    status: list[TaskStatus] = Field(
        default_factory=list, max_length=20, description="Only tasks in this state."
    )
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None,
        description="Tasks of this host and its subdomains; without settings for this host, also"
        " those of the domain that covers it, except where tasks are removed.",
    )
    url: Annotated[PlainText, Field(min_length=1, max_length=2000)] | None = Field(
        default=None, description="Only URLs that contain this; * matches anything."
    )
    all: bool = Field(default=False, description="All tasks; cannot be combined with a selection.")

    def selection(self) -> Selection:
        chosen = Selection(tuple(self.ids), tuple(self.status), self.domain, self.url)
        if chosen.is_everything != self.all:
            names = (Option(name) for name in ("domain", "status", "url", "all"))
            raise InvalidInput(
                "all tasks and a selection cannot be combined"
                if self.all
                else "no tasks were selected",
                hint=Hint("Give IDs, {}, {} or {}; or {}.", *names),
            )
        return chosen


class TaskTerms(Order):
    """What to set; `every` or `render` null: as the domain says. What is left out stays."""

    model_config = example(priority=8, every="12h")

    priority: Priority | None = None
    every: Every | None = Field(
        default=None, description="Recrawl interval: 30m, 6h, 1d, 1w; by default the domain's."
    )
    popularity: Popularity | None = None
    max_retries: Retries | None = None
    render: Render | None = None

    def changes(self) -> dict[str, Any]:
        """The arguments of `Tasks.set_terms`."""
        given = {n: v for n, v in self.given().items() if n in TaskTerms.model_fields}
        if not {"every", "render"} & given.keys() and all(v is None for v in given.values()):
            raise InvalidInput(
                "nothing to set was given",
                hint="Give a priority, an interval, a popularity, retries or when to render.",
            )
        every, render = given.get("every"), given.get("render")
        return {
            **given,
            "every": interval_of(every),
            "default_every": "every" in given and every is None,
            "render": None if render is None else parse_render(render),
            "default_render": "render" in given and render is None,
        }


class ChosenTerms(TaskTerms, TaskChoice):
    model_config = example(domain="shop.example.org", priority=8, every="12h")


NotFoundIds = Annotated[list[int], Field(description="IDs that belong to no task.")]


class RecrawlResult(View):
    """`held` ones are due, but wait until they are resumed."""

    found: int
    due: int
    held: int
    under_way: int = Field(description="Tasks that a worker is running already.")
    not_found: NotFoundIds = Field(default_factory=list)


class HoldResult(View, row=holds.Held):
    """What a hold, or its end, has changed, and what is on hold now in all."""

    withdrawn: int = Field(description="Canceled in the workers.")
    not_found: NotFoundIds = Field(default_factory=list)


class ChangedTasks(View):
    changed: int
    not_found: NotFoundIds = Field(default_factory=list)


class RemovedTasks(View):
    removed: int
    not_found: NotFoundIds = Field(default_factory=list)


class Backlog(View):
    """A domain's tasks that are due or with the workers."""

    domain: str
    due: int
    under_way: int
    oldest_due: Time | None


class TaskStats(View, row=tasks.TaskStats):
    all_hold: Hold | None
    backlog: list[Backlog] = Field(description="The domains with the most work waiting.")


class SchedulerState(View, row=tasks.TaskStats, hidden=("counts", "backlog")):
    """Whether tasks are handed to the workers, and what holds them back."""

    ticked_at: Time | None = Field(description="Last run of a scheduler; null: never.")
    interval: float = Field(description="Time between two runs.")
    all_hold: Hold | None


class LetterChoice(Order):
    """A selection of dead letters; all given conditions must match."""

    model_config = example(cause="timeout", domain="shop.example.org")

    ids: list[RowId] = Field(default_factory=list, max_length=MAX_BULK)
    cause: ErrorKind | None = Field(default=None, description="Only this cause, such as timeout.")
    domain: Annotated[PlainText, Field(min_length=1, max_length=300)] | None = Field(
        default=None, description="Only this host, its subdomains, or the domain that covers it."
    )
    all: bool = Field(default=False, description="Select all dead letters.")

    def filter(self) -> LetterFilter:
        if not (self.ids or self.cause or self.domain or self.all):
            names = (Option(name) for name in ("cause", "domain", "all"))
            hint = Hint("Give IDs, {}, {} or {}.", *names)
            raise InvalidInput("no dead letter was selected", hint=hint)
        return LetterFilter(ids=self.ids or None, cause=self.cause, domain=self.domain)
