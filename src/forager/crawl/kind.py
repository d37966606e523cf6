"""The kind of job that a crawl is. What runs one is imported by the runner, and by nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forager.crawl.options import check_payload
from forager.jobs.kinds import JobKind, register

if TYPE_CHECKING:
    from forager.jobs.context import JobContext
    from forager.jobs.outcome import Outcome


async def _crawl(context: JobContext) -> Outcome:
    from forager.crawl.job import crawl

    return await crawl(context)


CRAWL = register(JobKind("crawl", _crawl, check_payload, module="forager.crawl.job"))
