"""Operations on the URLs of a job, which belong to the group of the jobs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from forager.crawl import settlement
from forager.crawl.operations.jobs import JobId, find_job, jobs
from forager.crawl.results.url_lists import UrlFilter, list_pending, list_settled
from forager.crawl.settlement import Outcome, SettledUrl, UrlSort
from forager.operations.models import (
    Hexadecimal,
    Listed,
    Paging,
    PlainText,
    ResponseModel,
    Time,
    listed,
)
from forager.operations.operation import Columns, Context

__all__ = ["jobs"]

Outcomes = Annotated[
    list[Outcome], Field(max_length=20, description="Only URLs with this outcome.")
]
UrlReason = Annotated[PlainText, Field(max_length=500, description="Only URLs with this reason.")]
HttpStatus = Annotated[int, Field(ge=0, le=999, description="Only URLs with this HTTP status.")]
Contains = Annotated[
    PlainText, Field(max_length=500, description="Only URLs that contain this text.")
]
SortUrls = Annotated[UrlSort, Field(description="Sort up to 100,000 URLs.")]
Descending = Annotated[bool, Field(description="Largest or newest first.")]


_NOT_SHOWN = ("segment", "segment_length", "segment_offset", "url_hash")


_ABOUT_PAGE_OUTCOME = {
    "depth": "Links from a start URL.",
    "via": "How the URL was found.",
    "duplicate_of": "The URL with the same content.",
    "parent_url": "The page that links to the URL.",
    "size": "In bytes.",
    "content_type": "Content type of the response.",
    "reason": "The reason of the outcome, in one word.",
    "detail": "Details of the reason, such as an error message.",
}


class PageOutcome(
    ResponseModel, row=SettledUrl, hidden=_NOT_SHOWN, about=_ABOUT_PAGE_OUTCOME, thing="page"
):
    """The outcome of one URL of a job."""

    outcome: Outcome = Field(description="Outcome of the URL in this crawl.")
    content_hash: Hexadecimal | None = Field(description="Hash of the content.")
    archive: Annotated[str, BeforeValidator(str)] | None = Field(
        validation_alias="ref", description="Place of the response in the archive."
    )


_ABOUT_PENDING_URL = {
    "parent_url": "The page that links to the URL.",
    "url": "A URL that is yet to be fetched.",
}


class PendingUrl(
    ResponseModel, row=settlement.PendingUrl, hidden=("seq",), about=_ABOUT_PENDING_URL
):
    """A URL that a job has yet to fetch."""

    not_before: Time | None = Field(description="Time of the next retry; null: not tried yet.")


PAGE_COLUMNS: Columns = {
    "OUTCOME": "outcome", "HTTP>": "http_status",
    "WHY…": lambda each: each.detail or each.reason or "", "URL…": "url",
}  # fmt: skip


@jobs.operation(
    "pages",
    "GET /jobs/{job_id}/pages",
    columns=PAGE_COLUMNS,
    none="No URLs match.",
    flags={"http_status": "--status", "descending": "--reverse"},
)
async def pages(
    context: Context,
    job_id: JobId,
    paging: Paging,
    outcome: Outcomes | None = None,
    reason: UrlReason | None = None,
    http_status: HttpStatus | None = None,
    contains: Contains | None = None,
    sort: SortUrls | None = None,
    descending: Descending = False,
) -> Listed[PageOutcome]:
    """List processed URLs of a job with their outcomes.

    Without `sort` the order has no meaning. Up to 100,000 URLs can be sorted. A page of a filtered
    list may have fewer items than `limit` although more follow.
    """
    job = await find_job(context, job_id)
    wanted = UrlFilter(
        outcomes=outcome or tuple(Outcome), reason=reason, http_status=http_status, text=contains
    )
    page = await list_settled(
        context.database, job, wanted, sort=sort, descending=descending, **paging
    )
    return listed(page, PageOutcome.of)


@jobs.operation("pages", "GET /jobs/{job_id}/pending", command=False)
async def pending(context: Context, job_id: JobId, paging: Paging) -> Listed[PendingUrl]:
    """List URLs that a job has yet to fetch, in the order in which it fetches them."""
    job = await find_job(context, job_id)
    return listed(await list_pending(context.database, job, **paging), PendingUrl.of)
