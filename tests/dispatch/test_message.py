"""A message is a Celery task, made without Celery, and its ids are validated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from celery import Celery

from forager.dispatch.message import MOST_IDS, Band, Route, TaskMessage, checked_ids

# what its protocol says of every message
NEEDED = ("lang", "task", "id", "root_id", "parent_id", "group")
ROUTE = Route("crawl", Band.NORMAL)


def test_it_is_what_celery_would_have_sent() -> None:
    message = TaskMessage(ROUTE, [5, 6])
    properties = message.properties()
    headers = properties["application_headers"]
    with Celery("reference", set_as_current=False) as app:
        made = app.amqp.as_task_v2(headers["id"], "forager.crawl", args=([5, 6],))
    assert json.loads(message.body()) == json.loads(json.dumps(made.body))
    needed = {name: made.headers[name] for name in NEEDED}
    assert {name: headers[name] for name in needed} == needed
    assert set(headers) <= set(made.headers)
    assert properties["correlation_id"] == made.properties["correlation_id"]
    assert properties["delivery_mode"] == 2, "on disk, not in memory"


def test_two_messages_are_two() -> None:
    message = TaskMessage(ROUTE, [5])
    assert message.properties()["correlation_id"] != message.properties()["correlation_id"]


def test_ids_are_taken_as_they_are() -> None:
    assert checked_ids([1, 2**63 - 1]) == [1, 2**63 - 1]


@pytest.mark.parametrize(
    "named", [None, [], "1", {"id": 1}, [0], [-1], [2**63], [1.5], ["1"], [True], [[1]], [1, None]]
)
def test_nothing_else_is_an_id(named: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        checked_ids(named)


def test_not_too_many() -> None:
    with pytest.raises(ValueError, match="expected a list"):
        checked_ids(list(range(1, MOST_IDS + 2)))
