"""All operations by name, and the calls of the API that are written by hand."""

from __future__ import annotations

from collections.abc import Iterator

from forager.access.operations import keys
from forager.analytics.operations import analytics
from forager.crawl.operations.crawls import jobs
from forager.crawl.operations.explain import reading
from forager.crawl.operations.hosts import domains
from forager.crawl.operations.sources import sources
from forager.errors import InvalidInput
from forager.events.operations import event_log
from forager.failures.operations import errors
from forager.fetch.proxies.operations import proxies
from forager.hints import unknown_name
from forager.jobs.worker_operations import worker_list
from forager.operations.operation import Group, HandWritten, Operation
from forager.parsers.operations import parsers
from forager.products.alerts.operations import alerts
from forager.products.items.operations import items
from forager.tasks.operations.changes import tasks
from forager.tasks.operations.letters import dead_letters
from forager.tasks.operations.replacements import products
from forager.webhooks.operations import webhooks

# commands of no group
others = Group("", "Crawls and what they found.", page="Jobs")
others.by_hand("crawl", "POST /crawls", "POST /crawls/preview", button="New crawl")
others.by_hand("resume", "POST /jobs/{job_id}/resume", button="Resume")
others.by_hand("export", "GET /jobs/{job_id}/export", "GET /sources/{source_id}/export")

GROUPS: tuple[Group, ...] = (
    others,
    reading,
    jobs,
    sources,
    products,
    items,
    domains,
    proxies,
    tasks,
    errors,
    dead_letters,
    parsers,
    analytics,
    event_log,
    alerts,
    webhooks,
    worker_list,
    keys,
)


def operations() -> Iterator[Operation]:
    for group in GROUPS:
        yield from group.operations


def calls() -> Iterator[Operation | HandWritten]:
    """All calls of the API with their commands, those that are written by hand last."""
    yield from operations()
    for group in GROUPS:
        yield from group.hand_written


def find_operation(name: str) -> Operation:
    """The operation of a command, such as `webhooks list`."""
    found = next((each for each in operations() if each.name == name and each.command), None)
    if found is None:
        raise InvalidInput(f"{name!r}: {unknown_name(name, {each.name for each in operations()})}")
    return found
