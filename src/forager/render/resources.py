"""Requests of rendered pages, sent by Forager's own client: guard, robots.txt, budgets, limits."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Self

from forager.errors import Retry, WorkFailed
from forager.extract.hosts import host_name, host_of, parent_domains
from forager.fetch.failure import classify_status
from forager.fetch.response import Limits, Method, Request, Response
from forager.fetch.sender import CheckHop, Fetcher, follow
from forager.render.browser import ResourceReply, ResourceRequest
from forager.render.limits import RenderLimits

MAX_RESOURCE = 10 * 2**20
RESOURCE_LIMITS = Limits(body=MAX_RESOURCE, total=60.0)
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
    trouble: Retry | None = None


class AssetCache:
    """Scripts and styles that pages of a job share, up to a total size; the oldest leave first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
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
            self._size += len(response.body)
        while self._size > self._limit:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest.body)


@dataclass(frozen=True, slots=True)
class ResourceLoader:
    """Sends what pages request. `check` raises for URLs that may not be fetched."""

    fetcher: Fetcher
    check: CheckHop
    limits: RenderLimits
    cache: AssetCache

    @classmethod
    def of(cls, fetcher: Fetcher, check: CheckHop, limits: RenderLimits) -> Self:
        """A loader with a separate cache."""
        return cls(fetcher, check, limits, AssetCache(limits.cache_bytes))

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
            _note(account, request, cached, cached=True)
            return _reply(cached)
        try:
            response = await self._fetch(request)
        except WorkFailed as error:
            _note_trouble(account, request, error)
            return _refuse(account, request, str(error).partition("\n")[0][:200])
        account.bytes += len(response.body)
        _note(account, request, response)
        failure = classify_status(response.status, response.headers)
        if isinstance(failure, Retry):
            _note_trouble(account, request, failure)
        if request.method == Method.GET:
            self.cache.add(request.url, request.type, response)
        return _reply(response)

    def _limit_reached(self, account: PageAccount) -> str | None:
        if account.requests > self.limits.requests:
            return f"more than {self.limits.requests} requests"
        if account.bytes >= self.limits.bytes:
            return f"more than {self.limits.bytes:,} bytes"
        return None

    async def _fetch(self, request: ResourceRequest) -> Response:
        await self.check(request.url)
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
        )
        response, _ = await follow(self.fetcher, sent, self.check)
        return replace(response, url=request.url)


def _note(
    account: PageAccount, request: ResourceRequest, response: Response, *, cached: bool = False
) -> None:
    account.resources.append(
        Resource(request.url, request.type, response.status, len(response.body), cached)
    )


def _note_trouble(account: PageAccount, request: ResourceRequest, error: WorkFailed) -> None:
    own = host_of(request.url) == host_of(account.document.url)
    if own and request.type in NEEDED and isinstance(error, Retry):
        account.trouble = account.trouble or error


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
