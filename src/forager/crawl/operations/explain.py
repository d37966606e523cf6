"""The operation that explains the outcome of a URL."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field, WithJsonSchema

from forager.crawl.explain import explanation, outlook
from forager.crawl.explain.outlook import CheckAnswer
from forager.crawl.operations.jobs import find_job
from forager.crawl.settlement import PastOutcome
from forager.documents import visibility
from forager.documents.generation import State
from forager.documents.operations.models import CarriedPage
from forager.documents.operations.reading import reading
from forager.hints import Render, render
from forager.jobs.queue import Queue
from forager.operations.models import PlainText, ResponseModel, Time, Url
from forager.operations.operation import Context

__all__ = ["reading"]

InJob = Annotated[
    PlainText,
    Field(description="Only in this crawl: the ID of its job, or the beginning of it."),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]


class ExplainedStep(ResponseModel, row=explanation.RedirectStep, about={"url": "URL of the step."}):
    """A step of a redirect."""


_ABOUT_FETCH_CHECK = {
    "answer": "Result of the check.",
    "message": "The result of the check, in a sentence.",
}


class FetchCheck(ResponseModel, row=outlook.RuleCheck, about=_ABOUT_FETCH_CHECK, thing="check"):
    """Whether one of the rules allows the URL to be fetched now."""

    name: str = Field(
        description="Name.", examples=["address", "scope", "robots", "host", "budget"]
    )


class Outlook(
    ResponseModel,
    row=outlook.Outlook,
    about={"message": "Whether the URL would be fetched now, in a sentence."},
):
    """Whether a URL would be fetched now. Nothing is fetched to find out."""

    answer: CheckAnswer = Field(description="Result of the check that decides.")
    checks: list[FetchCheck] = Field(description="Checks in the order of a crawl.")
    domain: str | None = Field(description="Domain of the URL.")


_ABOUT_PAST_FATE = {
    "attempts": "Attempts that were made.",
    "outcome": "Outcome of the URL in that crawl.",
    "reason": "The reason of the outcome, in one word.",
    "detail": "Details of the reason, such as an error message.",
}


class PastFate(ResponseModel, row=PastOutcome, about=_ABOUT_PAST_FATE):
    """The outcome of a URL in one crawl."""


_ABOUT_TRACKED_AS = {
    "next_at": "When it runs next.",
    "last_attempt": "Outcome of the last attempt.",
    "last_at": "When the last attempt ended.",
}


class TrackedAs(ResponseModel, row=explanation.TrackedAs, about=_ABOUT_TRACKED_AS, thing="task"):
    """The task that tracks a URL, and why it is not running now."""

    why: str


class NearDuplicates(ResponseModel):
    """Pages with nearly the same text."""

    pages: int = Field(description="Number of pages with nearly the same text.")
    urls: list[str] = Field(description="The first few.")


class PageVisibility(
    ResponseModel,
    row=visibility.PageVisibility,
    about={"generation": "The generation that the crawl builds."},
):
    """The publication state of a page in its source."""

    state: State | None = Field(description="Null: no generation lists the page.")
    message: str = Field(
        description="Whether readers see the page, in a sentence.",
        examples=["not published: generation 2 is held back: it has no pages"],
    )
    since: Time | None = Field(description="Since when readers see this version.")
    held_back: int | None = Field(
        description="The generation with a newer version that readers do not see."
    )
    held_back_note: str | None = Field(description="Why it is held back.")


class Explanation(ResponseModel):
    """The outcome of a URL, why, and what would happen now."""

    url: str = Field(description="The URL as requested.")
    normalized: str = Field(description="The normalized URL.")
    steps: list[str] = Field(description="How the given URL was normalized.")
    job_id: UUID | None
    verdict: str = Field(description="Outcome in one word.")
    reason: str | None = Field(description="The reason of the outcome, in one word.")
    message: str = Field(description="The outcome and its reason, in a sentence.")
    publication: PageVisibility = Field(description="Whether readers find the page.")
    duplicate_of: str | None = Field(description="The URL with the same content.")
    carried_over: CarriedPage | None = Field(
        description="The page failed in this crawl, and its previous version stays published."
    )
    http_status: int | None
    depth: int | None
    attempts: int | None
    rendering: str | None = Field(
        description="Whether the page was rendered in a browser, and why; null: not a page."
    )
    near_duplicates: NearDuplicates | None = Field(
        description="Pages of the same crawl with nearly the same text, which are kept as well."
    )
    found_by: list[ExplainedStep] = Field(description="From a start of the crawl to this URL.")
    outlook: Outlook = Field(description="Whether this crawl would fetch the URL now.")
    history: list[PastFate] = Field(description="Outcomes in the latest crawls, newest first.")
    task: TrackedAs | None = Field(description="Null: the URL is not tracked.")

    @classmethod
    def build(cls, found: explanation.Explanation, show: Render) -> Self:
        task = found.task
        tracked = None if task is None else TrackedAs.of(replace(task, why=render(task.why, show)))
        return cls.of(found, task=tracked)


@reading.operation("explain", "GET /explain", tag="search", command=False, page="Explain")
async def explain(context: Context, url: Url, job_id: InJob | None = None) -> Explanation:
    """Explain the outcome of a URL in a job, by default the latest that contains it."""
    job = None if job_id is None else await find_job(context, job_id)
    queue = Queue(context.database, context.settings)
    found = explanation.explain(context.database, queue, url, job_id=job, user_id=context.owner)
    return Explanation.build(await found, context.show)
