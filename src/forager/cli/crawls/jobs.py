"""`forager jobs`: the commands of operations."""

from __future__ import annotations

from typing import Any

from forager.cli.operations import commands_of
from forager.cli.output import distance, say, show_model, show_table
from forager.crawl.operations.job_models import STYLES
from forager.crawl.operations.job_urls import jobs


def _show_work(answer: Any) -> None:
    left = {row.status: row for row in answer.pending_work}
    rows = [
        (
            (status.value, STYLES[status]),
            count,
            left[status].total_pending if status in left else "",
            distance(left[status].oldest) if status in left else "",
        )
        for status, count in answer.counts.items()
    ]
    show_table("STATUS, JOBS>, WORK LEFT>, OLDEST", rows)
    if message := answer.summary.message:
        say(message)


def _show_job(answer: Any) -> None:
    from forager.cli.crawls.crawl_progress import show_ledger  # rich starts slowly

    show_model(answer, without={"ledger"})
    if answer.ledger is not None:
        say("\nledger", "bold")
        show_ledger(answer.ledger.model_dump())


app = commands_of(jobs, {"work": _show_work, "show": _show_job})
