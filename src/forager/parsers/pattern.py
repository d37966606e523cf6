"""URL patterns of parsers: a host and a path, with `*` for what may differ."""

from __future__ import annotations

import re
from dataclasses import dataclass

from forager.errors import InvalidInput
from forager.extract.hosts import host_name, host_of, registrable_domain
from forager.extract.wildcard import Wildcard

_HOST = re.compile(r"\*|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?:\.\*)?")
ANY_HOST = "*"
ANY_SUFFIX = ".*"


@dataclass(frozen=True, slots=True)
class UrlPattern:
    """`shop.example/item/*` fits that host and those below it; `shop.*/item/*` in every country.

    A pattern with a `?` is compared with the query as well. The first `/` ends the host.
    """

    written: str
    host: str
    path: Wildcard

    @classmethod
    def compile(cls, pattern: str) -> UrlPattern:
        host, slash, path = pattern.strip().partition("/")
        if not slash or not _HOST.fullmatch(host.lower()):
            raise InvalidInput(
                f"{pattern!r} is not a URL pattern",
                hint="Write a host and a path without a scheme: shop.example/item/*",
            )
        return cls(pattern, host.lower(), Wildcard.compile(f"/{path}", anchored=True))

    @property
    def weight(self) -> int:
        """How much it says: of two patterns that fit, the heavier one is meant."""
        return len(self.written.replace("*", ""))

    def matches(self, url: str) -> bool:
        host = host_of(url)
        return self._fits_host(host_name(host)) and self.path.matches(self._path_of(url, host))

    def _path_of(self, url: str, host: str) -> str:
        path = url[url.find("//") + 2 + len(host) :] or "/"
        return path if "?" in self.written else path.partition("?")[0]

    def _fits_host(self, host: str) -> bool:
        if self.host == ANY_HOST:
            return True
        if not self.host.endswith(ANY_SUFFIX):
            return _is_below(host, self.host)
        # only a public suffix may stand for the star: shop.example.net is no shop.*
        suffix = registrable_domain(host).partition(".")[2]
        return bool(suffix) and _is_below(host, f"{self.host.removesuffix(ANY_SUFFIX)}.{suffix}")


def _is_below(host: str, other: str) -> bool:
    return host == other or host.endswith(f".{other}")
