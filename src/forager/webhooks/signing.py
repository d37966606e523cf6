"""Signatures of webhooks: who sent a message, and when.

The header is `Forager-Signature: t=1718000000,v1=5257a8…`: the time in Unix seconds, and the
HMAC-SHA256, in hexadecimal, of that number, a full stop and the body as it was sent. Receivers that
run Python can call `verify_signature`; for others these few lines say all there is to know.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from hashlib import sha256

from forager.errors import ForagerError

HEADER = "Forager-Signature"
SECRET_PREFIX = "fgs_"  # noqa: S105 - so that people and scanners recognize one
TOLERANCE = 300.0
_TIME = re.compile(r"[0-9]{1,12}")


class InvalidSignature(ForagerError):
    """The message was not signed with this secret, or not now."""


def new_secret() -> str:
    """A new random secret."""
    return SECRET_PREFIX + secrets.token_urlsafe(32)


def sign(secret: str, body: bytes, timestamp: int) -> str:
    """The value of the header."""
    return f"t={timestamp},v1={_digest(secret, body, timestamp)}"


def verify_signature(
    secret: str, header: str, body: bytes, tolerance: float = TOLERANCE, *, now: float | None = None
) -> None:
    """Raise InvalidSignature unless the secret signed the body in the last `tolerance` seconds.

    `body` is what was received, byte for byte, before anything has parsed it. A header may hold
    several signatures `v1`; one that fits is enough.

        verify_signature(secret, request.headers["Forager-Signature"], await request.body())
    """
    timestamp, signatures = _parse(header)
    expected = _digest(secret, body, timestamp).encode()
    # all are compared in constant time, so that the duration reveals nothing
    fits = [hmac.compare_digest(expected, given.encode()) for given in signatures]
    if not any(fits):
        raise InvalidSignature("the signature does not fit the message")
    if abs((time.time() if now is None else now) - timestamp) > tolerance:
        raise InvalidSignature(
            "the message was signed too long ago, or the clocks differ",
            hint=f"It may be a repetition of an old one; the limit is {tolerance:g} s.",
        )


def _digest(secret: str, body: bytes, timestamp: int) -> str:
    return hmac.new(secret.encode(), b"%d." % timestamp + body, sha256).hexdigest()


def _parse(header: str) -> tuple[int, list[str]]:
    fields = [field.strip().partition("=") for field in header[:4096].split(",")]
    times = [value for name, _, value in fields if name == "t"]
    signatures = [value for name, _, value in fields if name == "v1"]
    if len(times) != 1 or not _TIME.fullmatch(times[0]) or not signatures:
        raise InvalidSignature(f"the header {HEADER} is missing or not readable")
    return int(times[0]), signatures
