"""Crawler traps: rules for single URLs, and shapes by which a crawl counts URLs.

`find_trap` checks one URL by itself. Calendars and filters whose URLs pass that check are bounded
by counting URLs of one `path_shape` or `query_shape`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class TrapRule(StrEnum):
    """A rule for URLs that never end."""

    DEEP_PATH = "deep_path"
    REPEATING_PATH = "repeating_path"
    SESSION_ID = "session_id"
    CALENDAR = "calendar"
    MANY_PARAMETERS = "many_parameters"


@dataclass(frozen=True, slots=True)
class Trap:
    """The rule that a URL broke, and a description."""

    rule: TrapRule
    detail: str


MAX_SEGMENTS = 20
MAX_PARAMETERS = 16
# the years a date may be in
EARLIEST_YEAR = 1900
YEARS_AHEAD = 3


def find_trap(url: str, today: date) -> Trap | None:
    """The first rule that a normalized URL breaks, if any."""
    path, query = _path_and_query(url)
    segments = [segment for segment in path.split("/") if segment]
    return (
        _deep(segments)
        or _repeating(segments)
        or _session(path, query)
        or _many_parameters(query)
        or _far_date(path, query, today)
    )


def _path_and_query(url: str) -> tuple[str, str]:
    rest, _, query = url.partition("?")
    return _split_origin(rest)[1], query


# --- paths ----------------------------------------------------------------------------------

_LONGEST_CYCLE = 4
_MOST_OFTEN = 5


def _deep(segments: list[str]) -> Trap | None:
    if len(segments) <= MAX_SEGMENTS:
        return None
    return Trap(TrapRule.DEEP_PATH, f"{len(segments)} segments, more than {MAX_SEGMENTS}")


def _repeating(segments: list[str]) -> Trap | None:
    """A wrong relative link makes a site nest into itself: /a/b/a/b/a/b."""
    if len(segments) < 4 or len(set(segments)) == len(segments):
        return None
    for length in range(1, _LONGEST_CYCLE + 1):
        # one segment may well come three times (/api/api/api); a whole sequence does not
        times = 4 if length == 1 else 3
        if cycle := _cycle(segments, length, times):
            return Trap(TrapRule.REPEATING_PATH, f"/{'/'.join(cycle)} repeats {times} times")
    for segment, count in Counter(segments).items():
        if count >= _MOST_OFTEN and not segment.isdigit():
            return Trap(TrapRule.REPEATING_PATH, f"/{segment} comes {count} times")
    return None


def _cycle(segments: list[str], length: int, times: int) -> list[str] | None:
    for start in range(len(segments) - length * times + 1):
        cycle = segments[start : start + length]
        same = cycle * times == segments[start : start + length * times]
        if same and not all(segment.isdigit() for segment in cycle):
            return cycle
    return None


# --- session ids ----------------------------------------------------------------------------

_SESSION_IN_PATH = re.compile(
    r";(?:jsessionid|phpsessid|sessionid|sid|cfid|cftoken)=[^/;?]*|/\((?:[A-Z]\([^()/]+\))+\)(?=/|$)",
    re.IGNORECASE,
)
_SESSION_NAME = re.compile(
    r"(?:jsessionid|phpsessid|aspsessionid\w*|sessionid|session_id|sessid|cfid|cftoken|zenid|oscsid)",
    re.IGNORECASE,
)
# short names mean a session only with a value that looks like one: ?sid=3 is a story
_MAYBE_SESSION_NAME = re.compile(r"(?:s|sid|session)", re.IGNORECASE)
_SESSION_VALUE = re.compile(r"(?=[^=]*[0-9])(?=[^=]*[A-Za-z])[A-Za-z0-9_-]{20,}")


def _session(path: str, query: str) -> Trap | None:
    if in_path := _SESSION_IN_PATH.search(path):
        return Trap(TrapRule.SESSION_ID, f"{in_path[0][:40]} in the path")
    for part in query.split("&") if query else ():
        if _is_session(part):
            return Trap(TrapRule.SESSION_ID, f"{part[:40]} in the query")
    return None


def _is_session(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    if _SESSION_NAME.fullmatch(name):
        return True
    return bool(_MAYBE_SESSION_NAME.fullmatch(name) and _SESSION_VALUE.fullmatch(value))


def without_session(url: str) -> str:
    """The URL without its session id, for sites that add one to every link of a new visitor."""
    address, mark, query = url.partition("?")
    kept = "&".join(part for part in query.split("&") if not _is_session(part))
    # the path alone: a host may hold nearly any character, and must stay the host that it is
    origin, path = _split_origin(address)
    plain = origin + _SESSION_IN_PATH.sub("", path)
    return f"{plain}?{kept}" if mark and kept else plain


# --- queries and dates ----------------------------------------------------------------------


def _many_parameters(query: str) -> Trap | None:
    count = query.count("&") + 1 if query else 0
    if count <= MAX_PARAMETERS:
        return None
    return Trap(TrapRule.MANY_PARAMETERS, f"{count} parameters, more than {MAX_PARAMETERS}")


# /item/2055/10 may be the tenth page of an item: a year and a month are a date only on a calendar.
# Only the future counts in paths, since archives and item numbers fill the past.
_DATE_IN_PATH = re.compile(
    r"/(2[01]\d\d)(?:-(?:0[1-9]|1[0-2])(?:-\d\d)?|/(?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12]\d|3[01]))(?=/|$)"
    r"|/(?:calendar|events?|agenda|kalender|termine|calendrier|calendario|schedule|month|week)"
    r"(?:/[^/]+)*?/(2[01]\d\d)/(?:0?[1-9]|1[0-2])(?=/|$)",
    re.IGNORECASE,
)
_DATE_IN_QUERY = re.compile(
    r"(?:^|&)(?:(?=\w*?(?:date|day|month|week))\w*+=(\d{4})-\d\d?(?:-\d\d?)?"
    r"|(?:\w*_)?(?:year|yr)=(\d{4}))"
    r"(?![^&])",
    re.IGNORECASE,
)


def _far_date(path: str, query: str, today: date) -> Trap | None:
    latest = today.year + YEARS_AHEAD
    for match in (_DATE_IN_PATH.search(path), query and _DATE_IN_QUERY.search(query)):
        year = int(match[match.lastindex or 0]) if match else today.year
        if not EARLIEST_YEAR <= year <= latest:
            return Trap(TrapRule.CALENDAR, f"a date in the year {year}")
    return None


# --- shapes ---------------------------------------------------------------------------------

_VARIABLE = re.compile(
    r"(?P<date>\d{4}-\d\d?(?:-\d\d?)?)"
    r"|(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<number>\d+)"
    r"|(?P<hex>(?=[a-f]*\d)[0-9a-f]{16,})",
    re.IGNORECASE,
)


def path_shape(url: str) -> str:
    """The URL without query, its numbers, dates and ids as placeholders: a calendar is one."""
    origin, path = _split_origin(url.partition("?")[0])
    return origin + "/".join(map(_segment_shape, path.split("/")))


def query_shape(url: str) -> str:
    """The URL with only the sorted names of its parameters: all values of a filter are one."""
    path, mark, query = url.partition("?")
    names = sorted({part.partition("=")[0] for part in query.split("&")})
    return f"{path}?{'&'.join(names)}" if mark else path


def _split_origin(url: str) -> tuple[str, str]:
    start = url.find("/", url.find("//") + 2)
    return (url[:start], url[start:]) if start >= 0 else (url, "")


def _segment_shape(segment: str) -> str:
    variable = _VARIABLE.fullmatch(segment)
    return f"{{{variable.lastgroup}}}" if variable else segment
