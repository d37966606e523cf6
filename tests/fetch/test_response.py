from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from forager.fetch.response import join_location, parse_retry_after

DATE = "Sat, 15 Nov 2025 08:00:00 GMT"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        (" 30 ", 30.0),
        ("Sat, 15 Nov 2025 08:02:00 GMT", 120.0),
        ("Sat, 15 Nov 2025 07:00:00 GMT", 0.0),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("9" * 400, None),
        ("Sat, 99 Nov 2025 08:00:00 GMT", None),
        ("\u0663", None),
    ],
)
def test_retry_after_in_both_forms(text: str, seconds: float | None) -> None:
    assert parse_retry_after({"Retry-After": text, "Date": DATE}) == seconds


def test_retry_after_without_a_server_clock_uses_ours() -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    seconds = parse_retry_after({"Retry-After": format_datetime(later, usegmt=True)})
    assert seconds is not None
    assert 3500 < seconds <= 3600


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "http://h.example/b"),
        ("b?x=1#top", "http://h.example/dir/b?x=1#top"),
        ("//other.example", "http://other.example/"),
        ("HTTPS://Other.Example:443/A", "https://other.example/A"),
        ("\\b", "http://h.example/b"),
        ("/\udce9", "http://h.example/%E9"),
        ("/\u00e9", "http://h.example/%C3%A9"),
        ("", None),
        ("javascript:alert(1)", None),
        ("file:///etc/passwd", None),
        ("http://[bad", None),
    ],
)
def test_locations_are_joined_as_browsers_do(location: str, target: str | None) -> None:
    assert join_location("http://h.example/dir/page", location) == target
