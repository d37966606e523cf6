"""Requests of rendered pages, sent by Forager's own client: guard, robots.txt, budgets, limits."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Self

from forager.errors import Retry, WorkFailed, error_text
from forager.extract.hosts import host_name, host_of, parent_domains
from forager.fetch.failure import classify_status
from forager.fetch.guard import is_private
from forager.fetch.redirects import CheckHop, Fetcher, follow
from forager.fetch.response import Method, Request, Response, ResponseLimits
from forager.render import cors
from forager.render.browser import ResourceReply, ResourceRequest
from forager.render.limits import RenderLimits

MAX_RESOURCE = 10 * 2**20
RESOURCE_LIMITS = ResponseLimits(body=MAX_RESOURCE, total=60.0)
# types that a page needs for its content: a temporary failure of its host makes it incomplete
NEEDED = frozenset({"script", "xhr", "fetch"})
ASSETS = frozenset({"script", "stylesheet", "image", "font"})
_UNCACHED = re.compile(r"no-store|private|no-cache", re.IGNORECASE)
_FRESH = re.compile(r"max-age=[1-9]|immutable", re.IGNORECASE)
# the client chooses these itself, and keeps no cookies
_OWN_HEADERS = frozenset(
    {"user-agent", "cookie", "host", "accept-encoding", "connection", "content-length",
     "if-none-match", "if-modified-since", "upgrade-insecure-requests"}
)  # fmt: skip
# the body is decoded, and no cookie reaches the page
_DROPPED_HEADERS = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "set-cookie", "connection",
     "keep-alive", "alt-svc", "report-to", "nel"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Resource:
    """A request of a page and its outcome: a status, or the reason why it was not sent."""

    url: str
    type: str
    status: int = 0
    size: int = 0
    cached: bool = False
    refused: str | None = None


@dataclass(slots=True)
class PageAccount:
    """The resources that one page has loaded."""

    # the page's own document, which has been fetched already
    document: Response
    pictures: bool = False
    resources: list[Resource] = field(default_factory=list)
    bytes: int = 0
    # requests that the page has made, including those without a response yet
    requests: int = 0
    # the first temporary failure that may have left the page incomplete
    error: Retry | None = None


class AssetCache:
    """Scripts and styles that pages share, up to a total size; the oldest leave first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.size = 0
        self._kept: OrderedDict[str, Response] = OrderedDict()

    def get(self, url: str) -> Response | None:
        response = self._kept.get(url)
        if response is not None:
            self._kept.move_to_end(url)
        return response

    def add(self, url: str, kind: str, response: Response) -> None:
        control = response.headers.get("Cache-Control", "")
        kept = kind in ASSETS or _FRESH.search(control)
        if not kept or response.status != 200 or _UNCACHED.search(control):
            return
        if url not in self._kept and len(response.body) <= self._limit // 4:
            self._kept[url] = response
            self.size += len(response.body)
        while self.size > self._limit:
            _, oldest = self._kept.popitem(last=False)
            self.size -= len(oldest.body)


class AssetCaches:
    """One cache per owner, and one limit for all; those of the least recent owners are dropped."""

    def __init__(self, limits: RenderLimits) -> None:
        self._limits = limits
        self._caches: OrderedDict[str, AssetCache] = OrderedDict()

    def of_owner(self, owner: str) -> AssetCache:
        cache = self._caches.pop(owner, None) or AssetCache(self._limits.cache_bytes)
        self._caches[owner] = cache
        while len(self._caches) > 1 and self._size() > self._limits.cache_bytes:
            self._caches.popitem(last=False)
        return cache

    def _size(self) -> int:
        return sum(cache.size for cache in self._caches.values())


@dataclass(frozen=True, slots=True)
class ResourceLoader:
    """Sends what pages request. `check` raises for URLs that may not be fetched.

    `owner`: the domain or the crawl of the pages, which take turns by owner.
    """

    fetcher: Fetcher
    check: CheckHop
    limits: RenderLimits
    cache: AssetCache
    user_agent: str
    owner: str = ""

    @classmethod
    def of(
        cls, fetcher: Fetcher, check: CheckHop, limits: RenderLimits, *, user_agent: str
    ) -> Self:
        """A loader with a separate cache."""
        return cls(fetcher, check, limits, AssetCache(limits.cache_bytes), user_agent)

    async def serve(self, account: PageAccount, request: ResourceRequest) -> ResourceReply:
        """The reply to one request of a page; never raises for anything that a page can cause."""
        if request.main:
            return _reply(account.document)
        account.requests += 1
        if (over := self._limit_reached(account)) is not None:
            return ResourceReply(refused=over, over=True)
        refused = refusal(request, account.document.url, pictures=account.pictures)
        if refused is not None:
            return _refuse(account, request, refused)
        cached = self.cache.get(request.url) if request.method == Method.GET else None
        if cached is not None:
            return self._reuse(account, request, cached)
        try:
            response = await self._fetch(account, request)
            redirected = cors.origin_of(response.url) != cors.origin_of(request.url)
            response = replace(response, url=request.url)
        except WorkFailed as error:
            _note_error(account, request, error)
            return _refuse(account, request, error_text(error).partition("\n")[0][:200])
        account.bytes += len(response.body)
        _note(account, request, response)
        failure = classify_status(response.status, response.headers)
        if isinstance(failure, Retry):
            _note_error(account, request, failure)
        if request.method == Method.GET and not redirected:
            self.cache.add(request.url, request.type, response)
        return _reply(response)

    def _limit_reached(self, account: PageAccount) -> str | None:
        if account.requests > self.limits.requests:
            return f"more than {self.limits.requests} requests"
        if account.bytes >= self.limits.bytes:
            return f"more than {self.limits.bytes:,} bytes"
        return None

    def _reuse(
        self, account: PageAccount, request: ResourceRequest, cached: Response
    ) -> ResourceReply:
        try:
            cors.check_response(request, account.document.url, cached)
        except WorkFailed as error:
            return _refuse(account, request, error.message)
        _note(account, request, cached, cached=True)
        return _reply(cached)

    async def _fetch(self, account: PageAccount, request: ResourceRequest) -> Response:
        async def check_hop(url: str) -> None:
            cors.check_redirect(request, url)
            await self.check(url)

        await self.check(request.url)
        # only a page from a private address may use others
        is_public = not is_private(account.document.peer)
        if (asked := cors.preflight_headers(request)) is not None:
            await self._preflight(account, request, asked, is_public=is_public)
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in _OWN_HEADERS and not name.startswith(("sec-", ":", "proxy-"))
        }
        sent = Request(
            request.url,
            method=Method(request.method),
            headers=headers,
            body=request.body or None,
            limits=RESOURCE_LIMITS,
            is_public=is_public,
            is_anonymous=cors.foreign_origin(request) is not None,
        )
        response, _ = await follow(self.fetcher, sent, check_hop)
        cors.check_response(request, account.document.url, response)
        return response

    async def _preflight(
        self,
        account: PageAccount,
        request: ResourceRequest,
        headers: dict[str, str],
        *,
        is_public: bool,
    ) -> None:
        """Ask the server whether the page may send the request, as a browser does."""
        account.requests += 1
        sent = Request(
            request.url,
            method=Method.OPTIONS,
            headers=headers,
            limits=RESOURCE_LIMITS,
            is_public=is_public,
            is_anonymous=True,
        )
        cors.check_preflight(request, await self.fetcher.fetch(sent))


def _note(
    account: PageAccount, request: ResourceRequest, response: Response, *, cached: bool = False
) -> None:
    account.resources.append(
        Resource(request.url, request.type, response.status, len(response.body), cached)
    )


def _note_error(account: PageAccount, request: ResourceRequest, error: WorkFailed) -> None:
    own = host_of(request.url) == host_of(account.document.url)
    if own and request.type in NEEDED and isinstance(error, Retry):
        account.error = account.error or error


def _refuse(account: PageAccount, request: ResourceRequest, reason: str) -> ResourceReply:
    account.resources.append(Resource(request.url[:2000], request.type, refused=reason))
    return ResourceReply(refused=reason)


def _reply(response: Response) -> ResourceReply:
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        lower = name.lower()
        if lower not in _DROPPED_HEADERS:
            headers[lower] = f"{headers[lower]}, {value}" if lower in headers else value
    return ResourceReply(response.status, headers, response.body)


# as Playwright names them
CONTENT_TYPES = frozenset({"document", "script", "stylesheet", "xhr", "fetch", "other"})
PICTURE_TYPES = frozenset({"image", "font"})
METHODS = frozenset({"GET", "HEAD", "POST"})

TRACKERS = frozenset(
    """
    adnxs.com adobedtm.com adsrvr.org adroll.com amazon-adsystem.com amplitude.com
    analytics.google.com appdynamics.com bat.bing.com bing-int.com bluekai.com braze.com
    bugsnag.com casalemedia.com chartbeat.com clarity.ms clicktale.net cloudflareinsights.com
    cookiebot.com cookielaw.org criteo.com criteo.net crazyegg.com datadoghq-browser-agent.com
    demdex.net didomi.io doubleclick.net facebook.net fullstory.com googleadservices.com
    google-analytics.com googlesyndication.com googletagmanager.com googletagservices.com
    heap.io heapanalytics.com hotjar.com hs-analytics.net hs-scripts.com
    intercom.io intercomcdn.com krxd.net licdn.com logrocket.com logrocket.io
    luckyorange.com matomo.cloud mixpanel.com mouseflow.com mparticle.com newrelic.com
    nr-data.net omtrdc.net onetrust.com optimizely.com outbrain.com parsely.com
    pinimg.com plausible.io posthog.com privacy-center.org quantserve.com
    quantcount.com qualtrics.com rubiconproject.com scorecardresearch.com segment.com
    segment.io sentry.io sentry-cdn.com sc-static.net smartlook.com
    statcounter.com taboola.com tealiumiq.com trustarc.com
    usercentrics.eu visualwebsiteoptimizer.com walkme.com zdassets.com
    """.split()  # noqa: SIM905 - a list that people maintain
)


def refusal(request: ResourceRequest, page: str, *, pictures: bool) -> str | None:
    """Why a request of a page is not sent; None if it may be."""
    if not request.url.startswith(("https://", "http://")):
        return "scheme"
    wanted = CONTENT_TYPES | PICTURE_TYPES if pictures else CONTENT_TYPES
    if request.type not in wanted:
        return request.type
    if request.method not in METHODS:
        return f"method {request.method}"
    name, own = (host_name(host_of(url)) for url in (request.url, page))
    # a page of a company that tracks others is still a page
    if name != own and not TRACKERS.isdisjoint((name, *parent_domains(name))):
        return "tracker"
    return None
