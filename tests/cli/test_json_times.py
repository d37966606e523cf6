"""Every time in `--json` is ISO 8601 with a zone, in whatever command it appears."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from api.furnished import furnish
from forager.db.database import Database
from forager.demo.server import demo_site
from forager.settings import Settings
from reference import commands
from support.cli import forager

LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
NAMED_AS_A_TIME = re.compile(r"(?:_at|_since|_until|since|until|oldest|last_seen|_refresh)$")
READS = {
    "list", "show", "events", "work", "pages", "services", "groups", "generations", "diff",
    "check", "audit", "history", "search", "offers", "changes", "stats", "alarms", "costs",
    "deliveries", "delivery", "rates", "current", "explain", "read", "doctor", "fetch", "parse",
    "verify", "set",
}  # fmt: skip
# with arguments that the furnished database has
ARGUMENTS = {
    "explain": ["https://docs.example.org/a"],
    "read": ["https://docs.example.org/a"],
    "search": ["zebra"],
    "jobs show": ["{job}"],
    "jobs events": ["{job}"],
    "jobs pages": ["{job}"],
    "sources show": ["{source_id}"],
    "sources pages": ["{source_id}"],
    "sources generations": ["{source_id}"],
    "sources diff": ["{source_id}"],
    "sources check": ["{source_id}"],
    "sources set": ["{source_id}", "--keep", "5"],
    "products show": ["{product_id}"],
    "products history": ["{product_id}"],
    "products search": ["lamp"],
    "products offers": ["{product_id}"],
    "tasks show": ["{task_id}"],
    "tasks set": ["{task_id}", "--every", "6h"],
    "errors show": ["{error_id}"],
    "domains show": ["{host}"],
    "domains set": ["{host}", "--delay", "2"],
    "proxies set": ["{proxy_id}", "--cost", "1/GB"],
    "webhooks show": ["{webhook_id}"],
    "webhooks set": ["{webhook_id}", "--ordered"],
    "webhooks deliveries": ["{webhook_id}"],
    "webhooks delivery": ["{webhook_id}", "{message_id}"],
    "keys show": ["{key_id}"],
    "alerts set": ["{rule_id}", "--percent", "7"],
    "items show": ["{product_id}"],
    "archive show": ["{segment}"],
    "archive read": ["{ref}"],
}
# fetches from a network, or needs more than a database, such as a file
LEFT_OUT = {"fetch", "parse", "doctor", "items rates"}


@pytest.fixture
def known(settings: Settings, database_url: str, command_line: None) -> dict[str, str]:
    async def fill() -> dict[str, str]:
        async with Database(database_url, name="forager test") as database:
            return await furnish(database, settings)

    filled = asyncio.run(fill())
    with demo_site(0) as url:
        crawled = forager("crawl", url, "--strategy", "single", "--allow-private", "--json")
    segment = forager("archive", "list", "--json").json["items"][0]["name"]
    job = crawled.json["job_id"]
    [page] = forager("jobs", "pages", job, "--outcome", "fetched", "--json").json["items"]
    return {**filled, "job": job, "segment": str(segment), "ref": page["archive"]}


def wrong(value: Any, name: str = "") -> Iterator[str]:
    """Values that are times, or are named as times, and are not written as such."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from wrong(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from wrong(inner, name)
    elif isinstance(value, str) and LIKE_A_TIME.match(value):
        if "T" not in value or datetime.fromisoformat(value).tzinfo is None:
            yield f"{name}: {value}"
    elif value is not None and not isinstance(value, bool) and NAMED_AS_A_TIME.search(name):
        yield f"{name}: {value!r}"


def test_every_time_has_a_zone(known: dict[str, str]) -> None:
    reading = [
        path.removeprefix("forager ")
        for path, command in commands()
        if path.rpartition(" ")[2] in READS and "as_json" in {each.name for each in command.params}
    ]
    assert len(reading) > 40
    times, bad = 0, {}
    for path in sorted(set(reading) - LEFT_OUT):
        arguments = [each.format(**known) for each in ARGUMENTS.get(path, [])]
        shown = forager(*path.split(), *arguments, "--json")
        bad[path] = list(wrong(shown.json)) if shown.code == 0 else shown.err
        times += len(LIKE_A_TIME.findall(shown.out))
    assert {path: found for path, found in bad.items() if found} == {}
    assert times > 100
