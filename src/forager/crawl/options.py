"""What a crawl was asked to do: the payload of a crawl job."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from forager.crawl.frontier.scope import Pattern, ScopeMode
from forager.errors import ForagerError, InvalidInput
from forager.extract.urls import NormalisedUrl, Refusal, normalise, with_scheme
from forager.fetch.headers import header_refusal
from forager.fetch.proxies.proxy import ProxySpec

MAX_SEEDS = 10_000
# instead of the URL of one proxy: those of the installation, in turn
POOL = "pool"


class Strategy(StrEnum):
    """Where the URLs of a crawl come from."""

    SITE = "site"  # the start, everything it leads to, and the sitemaps robots.txt names
    SITEMAP = "sitemap"  # the sitemaps alone
    LIST = "list"  # the given URLs alone
    SINGLE = "single"  # one page
    LLMS = "llms"  # llms.txt and llms-full.txt, and what they link to


class CrawlOptions(BaseModel):
    """Checked once, when the crawl is asked for; stored with the job and read at every run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    urls: Annotated[tuple[str, ...], Field(min_length=1, max_length=MAX_SEEDS)]
    strategy: Strategy = Strategy.SITE
    scope: ScopeMode = ScopeMode.HOST
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_pages: int | None = Field(default=None, ge=1)
    # what the quota of its owner left for this job; unlike the rest, no trait of the source
    granted_pages: int | None = Field(default=None, ge=1)
    # when it goes on after a rest: the day that counts these pages, and those that were counted
    # before
    granted_on: date | None = None
    spent_before: int | None = Field(default=None, ge=0)
    max_depth: int | None = Field(default=None, ge=0, le=1000)
    max_time: float | None = Field(default=None, gt=0)
    max_bytes: int | None = Field(default=None, ge=1)
    concurrency: int | None = Field(default=None, ge=1, le=1000)
    delay: float | None = Field(default=None, ge=0, le=3600)
    retries: int = Field(default=3, ge=0, le=100)
    retry_delay: float = Field(default=2.0, ge=0, le=3600)
    user_agent: str | None = Field(default=None, min_length=1, max_length=500)
    headers: dict[str, str] = Field(default_factory=dict)
    proxy: str | None = None
    # headers and proxy as they were given, if they hold secrets; above they are masked then
    sealed: str | None = None
    # sections, a generation and the search index; without them only the archive and the ledger
    documents: bool = True
    # product pages that are found become tasks, and are kept fresh from then on
    products: bool = False
    # in how many refreshes in a row, and for how long, a page that fails is kept; None: settings
    carry_over: int | None = Field(default=None, ge=0, le=1000)
    carry_over_days: float | None = Field(default=None, ge=0, le=3650)
    allow_private: bool = False
    ignore_robots: bool = False

    @model_validator(mode="before")
    @classmethod
    def _short_names(cls, given: Any) -> Any:
        """`url` and `depth`, as people write them in a row of `crawl_jobs`."""
        if not isinstance(given, dict):
            return given
        named = dict(given)
        if "url" in named and "urls" not in named:
            named["urls"] = [named.pop("url")]
        if "depth" in named and "max_depth" not in named:
            named["max_depth"] = named.pop("depth")
        return named

    @field_validator("urls")
    @classmethod
    def _normalised(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_start_url(url) for url in urls))

    @field_validator("include", "exclude")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                Pattern.compile(pattern)
            except InvalidInput as error:
                raise ValueError(str(error)) from None
        return patterns

    @field_validator("proxy")
    @classmethod
    def _proxy(cls, proxy: str | None) -> str | None:
        if proxy not in (None, POOL):
            try:
                ProxySpec.parse(proxy)
            except (ForagerError, ValueError) as error:
                raise ValueError(str(error)) from None
        return proxy

    @field_validator("headers")
    @classmethod
    def _headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if (refusal := header_refusal(name, value)) is not None:
                raise ValueError(refusal)
        return headers

    @property
    def seeds(self) -> tuple[NormalisedUrl, ...]:
        return tuple(NormalisedUrl(url) for url in self.urls)

    @property
    def page_limit(self) -> int | None:
        limits = (self.max_pages, self.granted_pages)
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def follows_links(self) -> bool:
        """Whether pages lead to further pages, rather than being asked for by name."""
        return self.strategy is Strategy.SITE

    def follows_links_at(self, depth: int) -> bool:
        return self.follows_links or (self.strategy is Strategy.LLMS and depth == 0)


def crawl_options(payload: dict[str, Any]) -> CrawlOptions:
    """The options a payload asks for, or which of them are wrong."""
    try:
        return CrawlOptions.model_validate(payload)
    except ValidationError as error:
        raise InvalidInput("\n".join(_explain(problem) for problem in error.errors())) from None


def check_payload(payload: dict[str, Any]) -> dict[str, Any]:
    return crawl_options(payload).model_dump(mode="json", exclude_defaults=True)


def _start_url(text: str) -> str:
    result = normalise(with_scheme(text))
    if isinstance(result, Refusal):
        raise ValueError(f"{text!r} cannot be crawled: {result.value}")
    return result


def _explain(problem: Any) -> str:
    name = ".".join(str(part) for part in problem["loc"])
    return f"{name}: {problem['msg'].removeprefix('Value error, ')}"


class ExportFormat(StrEnum):
    WARC = "warc"
    JSONL = "jsonl"
    PARQUET = "parquet"
