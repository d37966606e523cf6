"""Numbers, sizes and times as people read them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from uuid import UUID

from cronsim import CronSim
from markupsafe import Markup, escape

from forager.amounts import duration_text, price_text, size_text
from forager.operations.models import interval_text
from forager.web.navigation import linked

MISSING = "\N{EN DASH}"
JOB_EVENTS = {
    "enqueue": "created",
    "claim": "started",
    "complete": "completed",
    "fail": "failed",
    "retry later": "retry scheduled",
    "release": "released",
    "park": "pause confirmed",
    "pause": "pause requested",
    "resume": "resumed",
    "cancel": "canceled",
    "retry": "retried",
    "retry failed": "failed URLs retried",
}
NAMES = {
    "http": "HTTP",
    "http_client": "HTTP 4xx",
    "http_server": "HTTP 5xx",
    "gtin": "GTIN",
    "mpn": "MPN",
    "cancelled": "canceled",
    "sku": "SKU",
    "product_id": "product ID",
    "variant_id": "variant ID",
}


_IDENTIFIER = re.compile(r"[^a-zA-Z'-]")


def number(value: float | None) -> str:
    """1234567 as 1,234,567; a fraction with at most two digits."""
    if value is None:
        return MISSING
    if value % 1:
        return f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) < 100 else f"{value:,.0f}"
    return f"{int(value):,}"


def short_number(value: float | None) -> str:
    """1234567 as 1.2 M, where there is little room."""
    if value is None:
        return MISSING
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f}".rstrip("0").rstrip(".") + unit
    return number(value)


def size(value: float | None) -> str:
    return MISSING if value is None else size_text(round(value))


def duration(seconds: float | None) -> str:
    """As `duration_text`, with milliseconds and tenths of a few seconds."""
    if seconds is None:
        return MISSING
    seconds = max(0.0, seconds)
    if seconds > 0 and round(1000 * seconds) < 1000:
        return f"{max(1, round(1000 * seconds))} ms"
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    return duration_text(seconds)


def money(amount: Decimal | None, currency: str | None) -> str:
    """A price that is not broken into two lines."""
    if amount is None:
        return MISSING
    return price_text(amount, currency).replace(" ", "\N{NO-BREAK SPACE}")


def percent(share: float | None) -> str:
    if share is None:
        return MISSING
    shown = 100 * share
    return f"{shown:.1f} %" if 0 < shown < 10 else f"{shown:.0f} %"


def change(value: float | Decimal) -> str:
    """A change in percent, with its sign: -4.81 as -4.8 %, 0.04 as +0.04 %."""
    distance = abs(float(value))
    if distance < 0.005:
        return "0 %"
    digits = 2 if distance < 0.1 else 1
    return f"{value:+,.{digits}f}".removesuffix(".0") + " %"


def moment(value: datetime | None) -> str:
    """A time in UTC, to the second."""
    return MISSING if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def when(value: datetime | None) -> Markup:
    """A time that the script shows as "3 min ago", with the exact local time as a tooltip."""
    if value is None:
        return Markup('<span class="none">{}</span>').format(MISSING)
    exact = value.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(
        exact.isoformat(timespec="seconds"), moment(exact), exact.strftime("%Y-%m-%d %H:%M")
    )


def exact(value: datetime | None) -> Markup | str:
    """A time to the second, which the script shows in the time zone of the reader."""
    return MISSING if value is None else local_time(value, len("2026-11-16 13:45:10 UTC"))


def due(value: datetime | None) -> Markup:
    """A time when something is to happen: the script shows it as "in 5 min" or "due 3 min ago"."""
    return when(value).replace("data-ago", "data-ago data-due")


# what of a time is shown, by the length of its text
LOCAL_LENGTHS = {len("2026-11-16"): "day", len("2026-11-16 13:45"): "minute"}


def local_time(value: datetime, length: int) -> Markup:
    """A time, cut to a length, that the script shows in the time zone of the reader."""
    exact = value.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}" data-local="{}">{}</time>').format(
        exact.isoformat(timespec="seconds"),
        moment(exact),
        LOCAL_LENGTHS.get(length, "second"),
        moment(exact)[:length],
    )


def day(value: datetime | None) -> str:
    return MISSING if value is None else value.astimezone(UTC).strftime("%Y-%m-%d")


def short_id(value: UUID | str) -> str:
    """The end of an ID: IDs of the same minute begin alike."""
    return str(value)[-12:]


def humanize(value: str) -> str:
    """A name of the code as words: `in_stock` as in stock, `http_404` as 404 Not Found."""
    if value in NAMES:
        return NAMES[value]
    if (status := value.removeprefix("http_")).isdecimal() and status != value:
        with contextlib.suppress(ValueError):
            return f"{status} {HTTPStatus(int(status)).phrase}"
    return value.replace("_", " ")


def humanize_causes(text: str) -> str:
    """A text whose causes in parentheses are words: `failed (http_404)`, `(3 × timeout)`."""
    return re.sub(r"(\(|× )([a-z]\w+)(?=[,)])", lambda found: found[1] + humanize(found[2]), text)


def cron_text(expression: str) -> str:
    """A cron expression as words: `30 4 * * 1-5` as at 04:30 on Monday through Friday."""
    text = CronSim(expression, datetime.now(UTC)).explain()
    return text[:1].lower() + text[1:]


def parsed_time(text: str) -> datetime:
    """A time in ISO 8601."""
    return datetime.fromisoformat(text)


def job_event(name: str) -> str:
    """The label of a job event: `claim` as started."""
    return JOB_EVENTS.get(name, name)


def sentence(text: str) -> str:
    """Capitalize a text, unless it begins with an identifier: a URL, a host name, a setting."""
    first = text.partition(" ")[0].rstrip(".,:;")
    return text if _IDENTIFIER.search(first) else f"{text[:1].upper()}{text[1:]}"


def actor(name: str) -> str:
    """The actor of a job event; of a worker's ID only the end, which differs between workers."""
    who, _, rest = name.partition(" ")
    try:
        return f"{who} …{short_id(UUID(rest))}"
    except ValueError:
        return name[:60]


def event_kind(kind: str) -> str:
    """product.price_changed as price changed."""
    return humanize(kind.partition(".")[2] or kind)


def highlighted(text: str, ranges: tuple[tuple[int, int], ...]) -> Markup:
    """Escaped text with the matches marked."""
    parts, at = [], 0
    for start, end in ranges:
        parts += [escape(text[at:start]), Markup("<mark>{}</mark>").format(text[start:end])]
        at = end
    return Markup("").join([*parts, escape(text[at:])])


def counted(count: int, one: str, many: str | None = None) -> str:
    """1 page, 2 pages."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


JOB_TONES = {"failed": "d", "cancelled": "f", "paused": "c", "completed": "a"}


def job_tone(status: str) -> str:
    """The color of a job's progress bar."""
    return JOB_TONES.get(status, "b")


_BY_NAME: tuple[Callable[..., Any], ...] = (
    number, short_number, size, duration, money, percent, change, when, due, day, short_id,
    humanize, humanize_causes, cron_text, parsed_time, sentence, actor, event_kind, job_event,
    counted, job_tone,
)  # fmt: skip
FILTERS: dict[str, Callable[..., Any]] = {
    **{each.__name__: each for each in _BY_NAME},
    "moment": exact,
    "interval": interval_text,
    "hint": linked,
}
