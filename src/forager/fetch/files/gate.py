"""One URL in, one response out: the URLs of a tree of files, answered without a request."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Callable, Iterable
from urllib.parse import quote

from multidict import CIMultiDict, CIMultiDictProxy

from forager.db.database import Database
from forager.extract.hosts import host_of
from forager.extract.urls import NormalizedUrl, Refusal, normalize
from forager.fetch.budgets.view import HostPace
from forager.fetch.files.tree import FileTree, below, content_type
from forager.fetch.response import Request, Response, ResponseLimits, Timing
from forager.fetch.robots.gate import RobotsGate, RobotsVerdict
from forager.fetch.sender import Sender

_READ_TOGETHER = 8
_NO_FILE = "application/x-not-a-page"
# files that a link to a folder, or one without or with another extension, can mean
_INDEX = ("index.html", "index.htm", "index.md", "index.rst", "README.md", "README.rst")
_PAGES = (".html", ".md", ".rst", ".mdx", ".htm")
_ALLOWED = RobotsVerdict(allowed=True, reason="files have no robots.txt")


class FileGate(RobotsGate):
    """Answers as a server of static files would, for URLs below `base`.

    A URL is looked up among those of the listed files, so no URL can lead to another file.
    """

    def __init__(
        self,
        database: Database,
        sender: Sender,
        tree: FileTree,
        paths: Iterable[str],
        base: NormalizedUrl,
        subfolder: str = "",
    ) -> None:
        super().__init__(database, sender, user_agent="", ignore=True)
        self._tree = tree
        self._paths = _by_url(paths, base, subfolder)
        self._pages = [url for url, path in self._paths.items() if content_type(path) is not None]

    def pages(self) -> list[NormalizedUrl]:
        """The URLs of the files that are pages."""
        return self._pages

    async def verdict(self, url: str) -> RobotsVerdict:  # noqa: ARG002
        return _ALLOWED

    async def crawl_delay(self, url: str) -> float | None:  # noqa: ARG002
        return None

    async def sitemaps(self, url: str) -> list[str]:  # noqa: ARG002
        return []

    async def fetch(
        self,
        request: Request,
        *,
        on_pick: Callable[[int], None] | None = None,  # noqa: ARG002 - there is no proxy
        on_slot: Callable[[], None] | None = None,
    ) -> Response:
        pace = HostPace(0.0, 0.0, _READ_TOGETHER, "")
        self._sender.budgets.on_slot(host_of(request.url), pace)
        if on_slot is not None:
            on_slot()
        return await asyncio.to_thread(self._answer, request)

    def _answer(self, request: Request) -> Response:
        path = self._paths.get(NormalizedUrl(request.url))
        if path is None:
            meant = self._meant(request.url)
            if meant is None:
                return _response(request.url, 404, "Not Found", {})
            return _response(request.url, 301, "Moved Permanently", {"Location": meant})
        kind = content_type(path)
        if kind is None:
            guessed = mimetypes.guess_type(path)[0] or _NO_FILE
            shown = _NO_FILE if guessed.startswith("text/") else guessed
            return _response(request.url, 200, "OK", {"Content-Type": shown})
        if request.etag is not None and request.etag == _etag(self._tree.version(path)):
            return _response(request.url, 304, "Not Modified", {"ETag": request.etag})
        content = self._tree.read(path, (request.limits or ResponseLimits()).body)
        etag = _etag(content.version)
        if request.etag == etag:
            return _response(request.url, 304, "Not Modified", {"ETag": etag})
        return _response(request.url, 200, "OK", {"Content-Type": kind, "ETag": etag}, content.body)

    def _meant(self, url: str) -> str | None:
        """The page that a link means whose URL is that of no file."""
        path = url.partition("?")[0]
        folder = path if path.endswith("/") else f"{path}/"
        stem = path.rstrip("/")
        before, dot, extension = stem.rpartition(".")
        stems = [stem, before] if dot and "/" not in extension else [stem]
        meant = [folder, *(folder + name for name in _INDEX)]
        meant += [each + suffix for each in stems for suffix in _PAGES]
        if before.endswith("/index"):
            meant.append(before.removesuffix("index"))
        known = (each for each in meant if each != url and NormalizedUrl(each) in self._paths)
        return next(known, None)


def _by_url(paths: Iterable[str], base: NormalizedUrl, subfolder: str) -> dict[NormalizedUrl, str]:
    """Paths by their URLs. A folder's index.html has the URL of the folder, as on a site."""
    found: dict[NormalizedUrl, str] = {}
    for path in paths:
        inside = below(path, subfolder)
        if inside is None:
            continue
        folder, slash, name = inside.rpartition("/")
        shown = folder + slash if name == "index.html" else inside
        url = normalize(base + quote(shown.encode("utf-8", "surrogateescape")))
        if not isinstance(url, Refusal) and url.startswith(base):
            found[url] = path
    return found


def _etag(version: str | None) -> str:
    return f'"{version}"'


def _response(
    url: str, status: int, reason: str, headers: dict[str, str], body: bytes = b""
) -> Response:
    return Response(
        url=url,
        status=status,
        reason=reason,
        headers=CIMultiDictProxy(CIMultiDict(headers)),
        body=body,
        wire_size=0,
        timing=Timing(None, None, 0.0, 0.0),
        peer="",
        http_version="HTTP/1.1",
    )
