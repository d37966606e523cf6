"""The kind of job that a crawl is. What runs one is imported by the runner, and by nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forager.crawl.options import check_payload
from forager.extract.hosts import host_of, parent_domains
from forager.jobs.kinds import JobKind, register

if TYPE_CHECKING:
    from forager.jobs.context import JobContext
    from forager.jobs.kinds import Outcome


async def _crawl(context: JobContext) -> Outcome:
    from forager.crawl.job import crawl

    return await crawl(context)


def _domains(payload: dict[str, Any]) -> tuple[str, ...]:
    """A crawl is where its first URL is, though it may meet other hosts."""
    host = host_of(payload["urls"][0])
    return (host, *parent_domains(host))


CRAWL = register(
    JobKind("crawl", _crawl, check_payload, module="forager.crawl.job", domains=_domains)
)
