"""URL patterns, versions and the name of the generic parser: what identifies a parser."""

from __future__ import annotations

import re
from dataclasses import dataclass

from forager.errors import InvalidInput
from forager.extract.hosts import host_name, host_of, registrable_domain
from forager.extract.wildcard import Wildcard

_HOST = re.compile(r"\*|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?:\.\*)?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65_535
ANY_HOST = "*"
ANY_SUFFIX = ".*"


@dataclass(frozen=True, slots=True)
class UrlPattern:
    """`shop.example/item/*` fits that host and those below it; `shop.*/item/*` in every country.

    A pattern with a `?` is compared with the query as well. The first `/` ends the host, which may
    have a port: without one, `shop.example/item/*` fits that host on every port.
    """

    written: str
    host: str
    path: Wildcard
    port: int | None = None

    @classmethod
    def compile(cls, pattern: str) -> UrlPattern:
        """A pattern from its text; raises InvalidInput."""
        place, slash, path = pattern.strip().partition("/")
        host, colon, port = place.lower().partition(":")
        if not slash or not _HOST.fullmatch(host) or (colon and not _is_port(port)):
            raise InvalidInput(
                f"{pattern!r} is not a URL pattern",
                hint="Write a host and a path without a scheme: shop.example/item/*",
            )
        compiled = Wildcard.compile(f"/{path}", anchored=True)
        return cls(pattern, host, compiled, int(port) if colon else None)

    @property
    def weight(self) -> int:
        """The specificity: of two matching patterns, the more specific one is used."""
        return len(self.written.replace("*", ""))

    def matches(self, url: str) -> bool:
        """Whether a URL has this host, port and path."""
        host = host_of(url)
        if self.port is not None and self.port != _port_of(url, host):
            return False
        return self._fits_host(host_name(host)) and self.path.matches(self._path_of(url, host))

    def _path_of(self, url: str, host: str) -> str:
        path = url[url.find("//") + 2 + len(host) :] or "/"
        return path if "?" in self.written else path.partition("?")[0]

    def _fits_host(self, host: str) -> bool:
        if self.host == ANY_HOST:
            return True
        if not self.host.endswith(ANY_SUFFIX):
            return _is_below(host, self.host)
        # only a public suffix may replace the star: shop.example.net does not match shop.*
        suffix = registrable_domain(host).partition(".")[2]
        return bool(suffix) and _is_below(host, f"{self.host.removesuffix(ANY_SUFFIX)}.{suffix}")


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) <= _MAX_PORT


def _port_of(url: str, host: str) -> int | None:
    """The port of a URL, or the default port of its scheme."""
    written = host[len(host_name(host)) + 1 :]
    return int(written) if written else _DEFAULT_PORTS.get(url.partition(":")[0])


def _is_below(host: str, other: str) -> bool:
    return host == other or host.endswith(f".{other}")


_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}", re.ASCII)


def version_key(version: object) -> tuple[int, ...]:
    """The sort key of a version; raises InvalidInput if it is not valid."""
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise InvalidInput(
            f"{version!r} is not a version of a parser", hint="Write numbers and dots: 1, 1.2"
        )
    return tuple(int(part) for part in version.split("."))


GENERIC_NAME = "generic"
# incremented whenever the same page may be read differently
GENERIC_VERSION = "9"


@dataclass(frozen=True, slots=True)
class VersionRate:
    """The results of a version for a domain: of its newest pages, and of seven days."""

    domain: str
    parser: str
    version: str
    role: str
    recent_pages: int
    recent_good: int
    week_pages: int
    week_good: int

    @property
    def recent_rate(self) -> float | None:
        return share(self.recent_good, self.recent_pages)

    @property
    def week_rate(self) -> float | None:
        return share(self.week_good, self.week_pages)


def share(good: int, pages: int) -> float | None:
    """A success rate; None if no page was read."""
    return round(good / pages, 4) if pages else None
