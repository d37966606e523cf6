"""Values in the words people read: times, ages, sizes, and text that cannot steer a terminal."""

from __future__ import annotations

from datetime import UTC, datetime

from forager.terminal import clean as clean

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def on_one_line(text: str) -> str:
    return clean(" ".join(text.split()))


def short_time(at: datetime | None) -> str:
    """A local time as short as it can be: without the date if that is today."""
    if at is None:
        return ""
    local = at.astimezone()
    today = datetime.now(UTC).astimezone().date()
    return local.strftime("%H:%M:%S" if local.date() == today else "%Y-%m-%d %H:%M")


def long_time(at: datetime | None) -> str:
    """A local time in full, and how far away it is."""
    if at is None:
        return ""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S} ({distance(at)})"


def distance(at: datetime) -> str:
    seconds = (datetime.now(UTC) - at).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"{duration(seconds)} ago" if seconds > 0 else f"in {duration(-seconds)}"


def duration(seconds: float) -> str:
    """A length of time in its one or two largest units."""
    rest = round(seconds)
    parts = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
