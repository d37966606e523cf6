"""The kind of job that a crawl is. What runs one is imported by the runner, and by nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forager.crawl.options import check_payload
from forager.extract.hosts import host_of
from forager.jobs.kinds import JobKind, register

if TYPE_CHECKING:
    from forager.jobs.context import JobContext
    from forager.jobs.kinds import Outcome


async def _crawl(context: JobContext) -> Outcome:
    from forager.crawl.job import crawl

    return await crawl(context)


def _host(payload: dict[str, Any]) -> str:
    """A crawl belongs to the host of its first URL, though it may meet other hosts."""
    return host_of(payload["urls"][0])


CRAWL = register(JobKind("crawl", _crawl, check_payload, module="forager.crawl.job", host=_host))
