"""The options of a crawl: declared once, and stored as the payload of its job."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from forager.crawl.frontier.scope import ScopeMode
from forager.errors import ForagerError, InvalidInput, error_text
from forager.extract.urls import NormalizedUrl, Refusal, normalize, with_scheme
from forager.extract.wildcard import Pattern
from forager.fetch.files.address import FileSource
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.response import header_refusal
from forager.settings.crawling import MarkdownMode, RenderMode
from forager.settings.values import LARGEST_BIGINT, HeaderValue, PlainText
from forager.validation import matches, sentences

MAX_SEEDS = 10_000
MAX_PATTERNS = 1000
MAX_HEADERS = 100
# in place of a proxy URL: rotate over the proxies of the installation
POOL = "pool"


class Strategy(StrEnum):
    """Sources of the URLs of a crawl."""

    SITE = "site"  # the start URL, everything it leads to, and the sitemaps robots.txt names
    SITEMAP = "sitemap"  # the sitemaps alone
    LIST = "list"  # the given URLs alone
    SINGLE = "single"  # one page
    LLMS = "llms"  # llms.txt and llms-full.txt, and the pages they link to


class CrawlChoices(BaseModel):
    """The options of a crawl, declared once.

    Command-line flags, the API's body and the dashboard's form derive from these fields: their
    names, types, limits, titles and descriptions. The library's keyword arguments have the same
    names; a test compares them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Strategy = Field(
        default=Strategy.SITE,
        title="Discover pages via",
        description="Where URLs come from: links and sitemaps of the site, its sitemaps alone,"
        " the given list, a single page, or llms.txt.",
    )
    scope: ScopeMode = Field(
        default=ScopeMode.HOST,
        title="Scope",
        description="How far to go from the start URL: its host, its domain with subdomains,"
        " or its path prefix.",
    )
    include: tuple[Annotated[PlainText, Field(min_length=1, max_length=2000)], ...] = Field(
        default=(),
        max_length=MAX_PATTERNS,
        title="Include patterns",
        description="Only crawl URLs that match a pattern, such as /docs/* or re:/v[0-9]+/.",
    )
    exclude: tuple[Annotated[PlainText, Field(min_length=1, max_length=2000)], ...] = Field(
        default=(),
        max_length=MAX_PATTERNS,
        title="Exclude patterns",
        description="Skip URLs that match a pattern; takes precedence over include patterns.",
    )
    language: (
        Annotated[
            PlainText, Field(pattern=matches(r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$", "a language"))
        ]
        | None
    ) = Field(
        default=None,
        title="Language",
        description="Only crawl pages in this language, such as en: translations are excluded by"
        " their URL, `hreflang` and `<html lang>`.",
    )
    max_pages: int | None = Field(
        default=None,
        ge=1,
        le=LARGEST_BIGINT,
        title="Max pages",
        description="Stop after this many pages.",
    )
    max_depth: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        title="Max depth",
        description="Follow at most this many links from the start URL.",
    )
    max_time: float | None = Field(
        default=None,
        gt=0,
        le=1e9,
        allow_inf_nan=False,
        title="Time limit (s)",
        description="Stop after this many seconds.",
    )
    max_bytes: int | None = Field(
        default=None,
        ge=1,
        le=LARGEST_BIGINT,
        title="Max bytes",
        description="Stop after this many bytes.",
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        title="Connections per host",
        description="Concurrent connections per host; 5 by default.",
    )
    delay: float | None = Field(
        default=None,
        ge=0,
        le=3600,
        allow_inf_nan=False,
        title="Delay (s)",
        description="Seconds between requests to a host; 1 by default, 0 on loopback."
        " robots.txt may ask for more.",
    )
    retries: int = Field(default=3, ge=0, le=100, title="Retries", description="Retries per URL.")
    retry_delay: float = Field(
        default=2.0,
        ge=0,
        le=3600,
        allow_inf_nan=False,
        title="Retry delay (s)",
        description="Seconds before the first retry of a URL; doubles with each retry.",
    )
    user_agent: Annotated[HeaderValue, Field(min_length=1, max_length=500)] | None = Field(
        default=None,
        title="User agent",
        description="User-Agent header; the setting of the installation by default.",
    )
    headers: dict[str, Annotated[str, Field(max_length=8000)]] = Field(
        default_factory=dict,
        max_length=MAX_HEADERS,
        title="Headers",
        description="Request headers, sent only to the sites of the start URLs.",
    )
    proxy: Annotated[PlainText, Field(max_length=8000)] | None = Field(
        default=None,
        title="Proxy",
        description="URL of a proxy (http, https or socks5), or `pool` for the installation's"
        " proxies.",
    )
    documents: bool = Field(
        default=True,
        title="Keep documents",
        description="Store sections, a generation and a search index, not only the archive.",
    )
    products: bool = Field(
        default=False,
        title="Track products",
        description="Track the product pages that the crawl finds.",
    )
    folder: Annotated[PlainText, Field(min_length=1, max_length=4000)] | None = Field(
        default=None,
        title="Folder or archive",
        description="Read the pages from this folder or archive (zip, tar) of the server instead"
        " of fetching them (through the API: admin scope, and the setting `source_folders`).",
    )
    repository: Annotated[PlainText, Field(min_length=1, max_length=2000)] | None = Field(
        default=None,
        title="Git repository",
        description="Read the pages from this git repository, such as"
        " https://git.example.org/manual.git.",
    )
    ref: Annotated[PlainText, Field(min_length=1, max_length=200)] | None = Field(
        default=None,
        title="Branch or tag",
        description="Branch, tag or commit of the repository; its default branch by default.",
    )
    subfolder: Annotated[PlainText, Field(min_length=1, max_length=1000)] | None = Field(
        default=None,
        title="Subfolder",
        description="Only read this folder of the repository, archive or folder.",
    )
    markdown: MarkdownMode | None = Field(
        default=None,
        title="Markdown",
        description="Read pages from the markdown that the site offers, if it does (auto), or"
        " never; the setting `markdown` by default.",
    )
    render: RenderMode = Field(
        default=RenderMode.AUTO,
        title="Render pages",
        description="Render pages in a browser: those whose static response lacks the content,"
        " always, or never.",
    )
    render_urls: tuple[Annotated[PlainText, Field(min_length=1, max_length=2000)], ...] = Field(
        default=(),
        max_length=MAX_PATTERNS,
        title="Render patterns",
        description="Always render URLs that match a pattern, such as /app/*.",
    )
    wait_for: Annotated[PlainText, Field(min_length=1, max_length=500)] | None = Field(
        default=None,
        title="Wait for",
        description="CSS selector that a rendered page must show before it is read.",
    )
    scroll: int = Field(
        default=0,
        ge=0,
        le=100,
        title="Scroll",
        description="Scroll a rendered page to its end up to this many times, for lists that load"
        " more.",
    )
    screenshots: bool = Field(
        default=False,
        title="Screenshots",
        description="Store a picture of each rendered page in the archive.",
    )
    hash_routes: bool = Field(
        default=False,
        title="Hash routes",
        description="Crawl the routes of a rendered page behind #/ or #!/ as pages.",
    )
    carry_over: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        title="Carry over (refreshes)",
        description="Number of refreshes for which a page that fails temporarily stays published;"
        " the setting `carry_over_refreshes` by default.",
    )
    carry_over_days: float | None = Field(
        default=None,
        ge=0,
        le=3650,
        allow_inf_nan=False,
        title="Carry over (days)",
        description="Number of days for which a page that fails temporarily stays published;"
        " the setting `carry_over_days` by default.",
    )
    allow_private: bool = Field(
        default=False,
        title="Allow private addresses",
        description="Allow private and loopback addresses (through the API: admin scope).",
    )
    ignore_robots: bool = Field(
        default=False, title="Ignore robots.txt", description="Ignore robots.txt."
    )


_FILE_OPTIONS = ("folder", "repository", "ref", "subfolder")


class CrawlOptions(CrawlChoices):
    """Validated once, when a crawl is requested; stored with the job and read at every run."""

    urls: Annotated[
        tuple[Annotated[PlainText, Field(max_length=8000)], ...],
        Field(min_length=1, max_length=MAX_SEEDS),
    ]
    # pages that the owner's quota granted this job; a fact about the job, not about the source
    granted_pages: int | None = Field(default=None, ge=1)
    # for a job that continues later: the day the grant counts for, and pages counted before
    granted_on: date | None = None
    spent_before: int | None = Field(default=None, ge=0)
    # headers and proxy as they were given, if they hold secrets; the fields above are masked then
    sealed: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_names(cls, given: Any) -> Any:
        """`url`, `depth` and `strategies`, as people write them in a row of `crawl_jobs`."""
        if not isinstance(given, dict):
            return given
        named = dict(given)
        if "url" in named and "urls" not in named:
            named["urls"] = [named.pop("url")]
        if "depth" in named and "max_depth" not in named:
            named["max_depth"] = named.pop("depth")
        if isinstance(named.get("strategies"), list) and "strategy" not in named:
            named["strategy"] = one_strategy(named.pop("strategies"))
        return named

    @model_validator(mode="before")
    @classmethod
    def _address_of_files(cls, given: Any) -> Any:
        """The pages of files have the URLs below one address, and no others belong to them."""
        if not isinstance(given, dict) or not (given.get("folder") or given.get("repository")):
            return given
        parts = {name: str(given[name]) for name in _FILE_OPTIONS if given.get(name)}
        fixed = {"scope": ScopeMode.PREFIX, "render": RenderMode.NEVER}
        return {**given, "urls": given.get("urls") or [FileSource(**parts).public_url], **fixed}

    @model_validator(mode="after")
    def _plain_files(self) -> CrawlOptions:
        if self.files is None:
            if self.ref is not None or self.subfolder is not None:
                raise ValueError("ref and subfolder belong to a folder or repository")
            return self
        if len(self.urls) > 1:
            raise ValueError("files have one public address: give at most one URL")
        if self.proxy is not None:
            raise ValueError("files are not read through a proxy")
        try:
            self.files.check()
        except InvalidInput as error:
            raise ValueError(error_text(error)) from None
        return self

    @field_validator("urls")
    @classmethod
    def _normalized(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_start_url(url) for url in urls))

    @field_validator("include", "exclude", "render_urls")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                Pattern.compile(pattern)
            except InvalidInput as error:
                raise ValueError(error_text(error)) from None
        return patterns

    @field_validator("proxy")
    @classmethod
    def _proxy(cls, proxy: str | None) -> str | None:
        if proxy not in (None, POOL):
            try:
                ProxySpec.parse(proxy)
            except (ForagerError, ValueError) as error:
                raise ValueError(error_text(error)) from None
        return proxy

    @field_validator("headers")
    @classmethod
    def _headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if (refusal := header_refusal(name, value)) is not None:
                raise ValueError(refusal)
        return headers

    @property
    def seeds(self) -> tuple[NormalizedUrl, ...]:
        """The start URLs."""
        return tuple(NormalizedUrl(url) for url in self.urls)

    @property
    def files(self) -> FileSource | None:
        """Where pages are read from instead of being fetched from a site."""
        if self.folder is None and self.repository is None:
            return None
        return FileSource(self.folder, self.repository, self.ref, self.subfolder)

    @property
    def page_limit(self) -> int | None:
        """The pages the crawl may fetch, by its options and by the quota of its owner."""
        limits = (self.max_pages, self.granted_pages)
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def follows_links(self) -> bool:
        """Whether links of pages are followed, rather than a list of URLs."""
        return self.strategy is Strategy.SITE

    def follows_links_at(self, depth: int) -> bool:
        return self.follows_links or (self.strategy is Strategy.LLMS and depth == 0)


def crawl_options(payload: dict[str, Any]) -> CrawlOptions:
    """The options of a payload; the error has a line for each option that is wrong."""
    try:
        return CrawlOptions.model_validate(payload)
    except ValidationError as error:
        problems = sentences(error.errors(), CrawlOptions.model_fields)
        raise InvalidInput("\n".join(problems)) from None


def one_strategy(strategies: list[Any]) -> Any:
    """The strategy of a list of them, as in the design documents: several mean `site`."""
    first, *others = strategies or [Strategy.SITE]
    return first if all(other == first for other in others) else Strategy.SITE


def check_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload of a crawl, checked; options with their default are left out."""
    return crawl_options(payload).model_dump(mode="json", exclude_defaults=True)


def _start_url(text: str) -> str:
    result = normalize(with_scheme(text))
    if isinstance(result, Refusal):
        raise ValueError(f"{text!r} cannot be crawled: {result.value}")
    return result
