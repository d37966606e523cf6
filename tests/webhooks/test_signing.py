"""A signature fits one secret, one body and one time."""

from __future__ import annotations

import time

import pytest

from forager.webhooks.signing import InvalidSignature, new_secret, sign, verify_signature

SECRET = "a secret of a receiver"
BODY = b'{"id": 1}'
NOW = 1_700_000_000


def test_what_was_signed_is_accepted() -> None:
    verify_signature(SECRET, sign(SECRET, BODY, NOW), BODY, now=NOW + 299)
    verify_signature(SECRET, sign(SECRET, BODY, int(time.time())), BODY)


def test_the_digest_is_the_documented_one() -> None:
    # echo -n '1700000000.{"id": 1}' | openssl dgst -sha256 -hmac 'a secret of a receiver'
    assert sign(SECRET, BODY, NOW) == (
        "t=1700000000,v1=fc1369c1e3c662bfad0a3b1531b76288cf11df190ce01e73c1fdb6f740d19ff3"
    )


@pytest.mark.parametrize(
    ("secret", "body"), [("another secret here", BODY), (SECRET, BODY + b" "), (SECRET, b"")]
)
def test_what_was_changed_is_refused(secret: str, body: bytes) -> None:
    with pytest.raises(InvalidSignature, match="does not fit"):
        verify_signature(secret, sign(SECRET, BODY, NOW), body, now=NOW)


def test_the_time_is_part_of_what_is_signed() -> None:
    moved = sign(SECRET, BODY, NOW).replace(str(NOW), str(NOW + 1000))
    with pytest.raises(InvalidSignature, match="does not fit"):
        verify_signature(SECRET, moved, BODY, now=NOW + 1000)


@pytest.mark.parametrize("later", [301, -301])
def test_what_is_old_or_from_the_future_is_refused(later: int) -> None:
    with pytest.raises(InvalidSignature, match="too long ago"):
        verify_signature(SECRET, sign(SECRET, BODY, NOW), BODY, now=NOW + later)
    verify_signature(SECRET, sign(SECRET, BODY, NOW), BODY, tolerance=302, now=NOW + later)


@pytest.mark.parametrize(
    "header",
    ["", "v1=00", "t=1", "t=x,v1=00", "t=1,t=2,v1=00", "t=-1,v1=00", f"t={'9' * 13},v1=00", "é=1"],
)
def test_headers_that_are_none_are_refused(header: str) -> None:
    with pytest.raises(InvalidSignature, match="not readable"):
        verify_signature(SECRET, header, BODY)


def test_odd_signatures_do_no_harm() -> None:
    with pytest.raises(InvalidSignature, match="does not fit"):
        verify_signature(SECRET, f"t={NOW},v1=é", BODY, now=NOW)


def test_one_of_several_signatures_is_enough() -> None:
    header = sign("the new secret, soon", BODY, NOW) + "," + sign(SECRET, BODY, NOW).split(",")[1]
    verify_signature(SECRET, header, BODY, now=NOW)


def test_secrets_are_long_and_new() -> None:
    assert new_secret() != new_secret()
    assert len(new_secret()) > 40
