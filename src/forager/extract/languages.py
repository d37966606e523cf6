"""Languages of pages by their URLs, and which of them are translations."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from forager.extract.hosts import host_name, host_of
from forager.extract.text import name_set

# languages into which documentation is translated; no word of English and no common abbreviation
_CLEAR = name_set(
    "ar bg bn ca da de el en eo es et eu fa fi fr gl he hi hr hu hy ja ka kk ko lt lv mk ms nb nl "
    "pt ro ru sk sl sq sr sv sw ta te th tr uk ur uz vi zh"
)
# these are languages only beside a page of a known language: /it/ may be a department
_DOUBTFUL = name_set("am as be bs cs ga id is it ky ml mn mr my ne no or pa pl si so tl")
_TAG = re.compile(r"([a-z]{2,3})(?:[-_]([a-z]{2}|[a-z]{4}|419))?", re.IGNORECASE)
_NAMES = name_set("lang language locale hl lng")
# parts of a path that are looked at: /docs/v2/fr/…
_PARTS = 4


def primary_language(tag: str) -> str:
    """The language without region and script: en of en-GB."""
    return tag.replace("_", "-").partition("-")[0].strip().lower()


def language_of_url(url: str, *, doubtful: bool = False) -> str | None:
    """The language that a URL names by its host, its path or a parameter; None if it names none.

    `doubtful`: also where the name is likely to mean something else.
    """
    address, _, query = url.partition("?")
    host = host_of(url)
    names = [value for name, value in parse_qsl(query) if name.lower() in _NAMES]
    if host_name(host) == host and host.count(".") >= 2:
        names.append(host.partition(".")[0])
    parts = address.split("/", 3)[3:]
    names += parts[0].split("/")[:-1][:_PARTS] if parts else []
    return next((found for each in names if (found := _language(each, doubtful))), None)


def _language(text: str, doubtful: bool) -> str | None:
    match = _TAG.fullmatch(text)
    if match is None:
        return None
    language = match[1].lower()
    known = language in _CLEAR or ((doubtful or match[2]) and language in _DOUBTFUL)
    return language if known else None
