"""Crawls: what to crawl and how, and how far it is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError

from forager.api.problems import InvalidFields, field_problems
from forager.crawl.operations.sources import CrawlStarted as CrawlStarted
from forager.crawl.options import MAX_SEEDS, CrawlChoices, CrawlOptions, Strategy, one_strategy
from forager.operations.models import LARGEST_INT, PlainText, ResponseModel, example
from forager.validation import matches

SourceName = Annotated[
    PlainText,
    Field(
        min_length=1,
        max_length=200,
        pattern=matches(r"^[^/\\?#%\s]+$", "a name without spaces and without / \\ ? # %"),
        examples=["docs.example.org"],
    ),
]
Text = Annotated[PlainText, Field(max_length=8000)]


class CrawlOrder(CrawlChoices):
    """Start URLs and the options of `forager crawl`."""

    model_config = example(
        urls=["https://docs.example.org/"], max_pages=500, exclude=["/archive/*"], priority=5
    )

    urls: list[Text] = Field(
        default_factory=list,
        max_length=MAX_SEEDS,
        description="Start URLs; of a folder or repository, the public address of its files.",
    )
    source: SourceName | None = Field(
        default=None, description="Name of the source; the host by default."
    )
    priority: int = Field(
        default=0, ge=-LARGEST_INT, le=LARGEST_INT, description="Higher runs first."
    )

    def options(self) -> CrawlOptions:
        """The options of the crawl; raises Pydantic's error for what is wrong with a value."""
        given = self.model_dump(exclude={"source", "priority"}, exclude_unset=True)
        return CrawlOptions.model_validate(given)


class PreviewedUrl(ResponseModel):
    """A URL that the crawl would reach."""

    url: str = Field(description="A URL that the crawl would reach.")
    via: str
    refusal: str | None = Field(description="Why the URL would not be fetched; null: it would be.")


class CrawlPreview(ResponseModel):
    """The beginning of a crawl that was not started."""

    urls: list[PreviewedUrl] = Field(description="First URLs, in the order of the crawl.")
    crawl_delay: float | None = Field(description="Seconds that robots.txt asks for.")
    sitemaps: list[str] = Field(description="Sitemaps listed in robots.txt.")
    problems: list[str] = Field(description="Problems with robots.txt or sitemaps.")


class KnowledgeItem(CrawlOrder):
    """The body of the design documents; the options of `POST /api/v1/crawls` work as well."""

    model_config = example(url="https://docs.example.org/", depth=3, strategies=["site"])

    urls: list[Text] = Field(default_factory=list, max_length=MAX_SEEDS, description="Start URLs.")
    url: Text | None = Field(default=None, description="Start URL.")
    depth: int | None = Field(default=None, ge=0, le=1000, description="The same as `max_depth`.")
    strategies: list[Strategy] = Field(
        default_factory=list, max_length=5, description="One `strategy`; several mean `site`."
    )

    def as_crawl(self) -> CrawlOrder:
        given = self.model_dump(exclude_unset=True, exclude={"url", "depth", "strategies"})
        if self.url is not None:
            given["urls"] = [self.url, *self.urls]
        if self.depth is not None:
            given["max_depth"] = self.depth
        if self.strategies:
            given["strategy"] = one_strategy(self.strategies)
        try:
            return CrawlOrder.model_validate(given)
        except ValidationError as error:
            raise InvalidFields(field_problems(error.errors(), "body")) from None
