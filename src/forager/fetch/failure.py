"""Failures, classified once: what went wrong, and by its class what to do about it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from http import HTTPStatus

import aiohttp
from aiohttp.http_exceptions import LineTooLong
from python_socks import ProxyError

from forager.errors import (
    ErrorKind,
    GiveUp,
    ProxySuspected,
    Retry,
    RotateProxy,
    SlowDown,
    StaleConnection,
    WorkFailed,
    error_text,
)
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.response import ResponseLimits, parse_retry_after

_SLOW_DOWN_STATUSES = frozenset({429, 503})
_AGAIN = frozenset({408, 425})
# SOCKS5 replies about the target, not the proxy: unreachable, refused, expired
_SOCKS_TARGET = frozenset({3, 4, 5, 6})


def classify_status(status: int, headers: Mapping[str, str]) -> WorkFailed | None:
    """The failure that an HTTP status means; None if the response can be used."""
    if status < 400:
        return None
    kind = ErrorKind.HTTP_CLIENT if status < 500 else ErrorKind.HTTP_SERVER
    message = f"the server answered {status}{_phrase(status)}"
    if status == 407:
        return RotateProxy(f"the proxy answered {status}{_phrase(status)}", kind=kind)
    if status in _SLOW_DOWN_STATUSES:
        return SlowDown(message, kind=kind, retry_after=parse_retry_after(headers))
    if status >= 500 or status in _AGAIN:
        return Retry(message, kind=kind)
    return GiveUp(message, kind=kind)


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def classify(
    error: Exception, limits: ResponseLimits, proxy: ProxySpec | None, *, is_reused: bool = False
) -> WorkFailed:
    """Translate an exception of the HTTP library.

    `is_reused`: there was no response yet on a kept connection, and the request has no effect.
    """
    if isinstance(error, WorkFailed):
        return error
    if is_reused and _broke_off(error):
        return StaleConnection(_network_message(error), kind=ErrorKind.NETWORK)
    if proxy is not None and _is_proxys_fault(error, proxy):
        return proxy_failure(error, proxy.address)
    if isinstance(error, TimeoutError):
        return Retry(_timeout_message(error, limits), kind=ErrorKind.TIMEOUT)
    tls = _tls_failure(error)
    if tls is not None:
        return tls
    if isinstance(error, aiohttp.InvalidURL | ValueError):
        return GiveUp(f"the request is not valid: {error_text(error)}", kind=ErrorKind.VALIDATION)
    if _headers_too_large(error):
        return GiveUp("the response headers are larger than allowed", kind=ErrorKind.TOO_LARGE)
    if isinstance(error, aiohttp.ClientError | OSError):
        broke_off = proxy is not None and _broke_off(error)
        failure = ProxySuspected if broke_off else Retry
        return failure(_network_message(error), kind=ErrorKind.NETWORK)
    return Retry(f"unexpected {type(error).__name__}: {_text(error)}", kind=ErrorKind.INTERNAL)


def socks_failure(error: Exception, proxy: ProxySpec) -> WorkFailed:
    if isinstance(error, ProxyError) and error.error_code in _SOCKS_TARGET:
        return Retry(f"the proxy cannot reach the server: {_text(error)}", kind=ErrorKind.NETWORK)
    return proxy_failure(error, proxy.address)


def _is_proxys_fault(error: Exception, proxy: ProxySpec) -> bool:
    if isinstance(error, aiohttp.ClientHttpProxyError | aiohttp.ClientProxyConnectionError):
        return True
    if isinstance(error, aiohttp.ClientConnectorError):
        # the key names the target if its TLS fails, and the proxy if that of the proxy fails
        return error.host == proxy.host.strip("[]") and error.port == proxy.port
    return isinstance(error, aiohttp.ConnectionTimeoutError)


def _broke_off(error: Exception) -> bool:
    """Whether a connection ended before a response."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False
    return isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)


def proxy_failure(error: Exception, address: str) -> RotateProxy:
    kind = ErrorKind.TIMEOUT if isinstance(error, TimeoutError) else ErrorKind.NETWORK
    if isinstance(error, aiohttp.ClientHttpProxyError):
        what = f"answered {error.status}{_phrase(error.status)}"
    else:
        what = f"failed: {_text(error)}"
    return RotateProxy(f"the proxy {address} {what}", kind=kind)


def _timeout_message(error: TimeoutError, limits: ResponseLimits) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {min(limits.connect, limits.total):g} s"
    if isinstance(error, aiohttp.SocketTimeoutError):
        return f"the server sent nothing for {limits.read:g} s"
    return f"the response was not complete within {limits.total:g} s"


def _tls_failure(error: Exception) -> WorkFailed | None:
    # errors of the library are SSLErrors too, but only the original has the reason
    found = [cause for cause in _chain(error) if isinstance(cause, ssl.SSLError)]
    if not found:
        return None
    original = found[-1]
    if isinstance(original, ssl.SSLCertVerificationError):
        reason = getattr(original, "verify_message", "") or _text(original)
        return GiveUp(f"the certificate is not valid: {reason}", kind=ErrorKind.TLS)
    return Retry(f"the TLS handshake failed: {_text(original)}", kind=ErrorKind.TLS)


def _headers_too_large(error: Exception) -> bool:
    return any(
        isinstance(cause, LineTooLong) or "Too many headers" in str(cause)
        for cause in _chain(error)
    )


def _network_message(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name cannot be resolved: {_text(error.os_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection: {_text(error.os_error)}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection without an answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return f"the body broke off: {_text(error)}"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the answer is not HTTP: {_first_line(error.message)}"
    return f"the connection broke: {_text(error)}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__


def _text(error: BaseException) -> str:
    return _line(error_text(error))


def _first_line(message: str) -> str:
    """The line that names the problem; the next ones quote the answer as Python writes bytes."""
    return _line(message.strip().partition("\n")[0]).rstrip(":")


def _line(message: object) -> str:
    """One line of bounded length: servers may have written it."""
    return " ".join(str(message).split())[:200]
