"""One proxy: where it is, what it speaks, and who we are to it."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from ada_url import URL

from forager.errors import InvalidInput

_HINT = "write a proxy as http://user:password@host:port, https://... or socks5://..."


class ProxyScheme(StrEnum):
    HTTP = "http"
    HTTPS = "https"
    SOCKS5 = "socks5"


_DEFAULT_PORTS = {ProxyScheme.HTTP: 80, ProxyScheme.HTTPS: 443, ProxyScheme.SOCKS5: 1080}


@dataclass(frozen=True, slots=True)
class ProxySpec:
    """A proxy to send requests through. Names of targets are resolved by the proxy."""

    scheme: ProxyScheme
    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> ProxySpec:
        """Read `scheme://user:password@host:port`; say what is wrong without the password."""
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            scheme = ProxyScheme("socks5" if parts.scheme == "socks5h" else parts.scheme)
            port = parts.port or _DEFAULT_PORTS[scheme]
            host = _normal_host(parts.hostname or "")
        except ValueError:
            raise InvalidInput("the proxy address is not valid", hint=_HINT) from None
        return cls(scheme, host, port, _decoded(parts.username), _decoded(parts.password))

    @property
    def address(self) -> str:
        """Scheme, host and port: safe to show and to log."""
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def authorization(self) -> str | None:
        """The value of Proxy-Authorization, or None without credentials."""
        if self.username is None:
            return None
        pair = f"{self.username}:{self.password or ''}"
        return "Basic " + b64encode(pair.encode()).decode()


def _normal_host(host: str) -> str:
    # WHATWG spelling, so that the guard sees 127.0.0.1 where 0x7f.1 was written
    text = f"[{host}]" if ":" in host else host
    return str(URL(f"http://{text}/").hostname)


def _decoded(text: str | None) -> str | None:
    return None if text is None else unquote(text)
