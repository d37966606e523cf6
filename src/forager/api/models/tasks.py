"""URLs to keep fresh, and the state of the scheduler."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import AwareDatetime, Field, WithJsonSchema

from forager.api.actions import as_call
from forager.extract.text import storable
from forager.hints import render
from forager.operations.models import Every, RequestModel, ResponseModel, example, interval_of
from forager.tasks.imports import request_of
from forager.tasks.operations.changes import Popularity, Priority, Render, Retries
from forager.tasks.tracking_request import BadLine, RequestedTerms, TrackRequest

MAX_TRACKED = 10_000

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


class TrackOrder(RequestModel):
    """What to keep fresh. The terms apply to items without their own."""

    model_config = example(
        items=[
            "https://lamps.example.org/desk-lamp",
            {"url": "https://lamps.example.org/floor-lamp", "priority": 8, "every": "6h"},
        ],
        every="1d",
    )

    items: list[TrackedItem] = Field(
        min_length=1, max_length=MAX_TRACKED, description="URLs, or URLs with their own terms."
    )
    priority: Priority | None = None
    every: Every | None = Field(default=None, description="30m, 6h, 1d, 1w")
    popularity: Popularity | None = None
    at: AwareDatetime | None = Field(default=None, description="When the next visit is due.")
    max_retries: Retries | None = None
    render: Render | None = None
    allow_private: bool = Field(default=False, description="Allow private addresses (admin scope).")

    def terms(self) -> RequestedTerms:
        every = interval_of(self.every)
        return RequestedTerms(
            self.priority, every, self.popularity, self.at, self.max_retries, self.render
        )

    def requests(self) -> list[TrackRequest | BadLine]:
        texts = [
            item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            for item in self.items
        ]
        return [
            request_of(number, item, storable(text))
            for number, (item, text) in enumerate(zip(self.items, texts, strict=True))
        ]


class RefusedItem(ResponseModel):
    """An item that cannot be tracked; the others are."""

    item: int = Field(description="Position in the list, from 0.")
    reason: str = Field(description="Why the item was rejected.")
    text: str = Field(description="Text of the item.")

    @classmethod
    def build(cls, bad: BadLine) -> RefusedItem:
        return cls(item=bad.line, reason=render(bad.reason, as_call), text=storable(bad.text))


class TrackedTask(ResponseModel, thing="task"):
    """The task of one item."""

    item: int = Field(description="Position of its URL in the list, from 0.")
    id: int
    url: str = Field(description="As given in the request.")


class TrackResult(ResponseModel):
    """The result for each item."""

    added: int = Field(description="Number of new tasks.")
    known: int = Field(description="URLs that are tracked already or repeated.")
    updated: int = Field(description="Number of existing tasks whose options changed.")
    bad: int = Field(description="Number of rejected items.")
    tasks: list[TrackedTask] = Field(description="The tracked tasks.")
    refused: list[RefusedItem] = Field(description="Rejected items.")
