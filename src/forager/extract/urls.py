"""URLs by the WHATWG standard, and the one spelling under which Forager knows each page."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import NewType

import ada_url

from forager.extract.text import name_set, scalar_values

MAX_URL_LENGTH = 4096
# dots, blanks and fragments may vanish in parsing, so what is given may be longer than the result
MAX_GIVEN_LENGTH = 65_536

NormalizedUrl = NewType("NormalizedUrl", str)


# an address, `localhost`, or any host with a port that is not 443
_LOCAL = re.compile(
    r"""(?: (?:localhost | \d{1,3}(?:\.\d{1,3}){3} | \[[0-9a-f:.]+\]) (?: : (?!443(?:\D|$)) \d+ )?
          | [^/?\#:@\s]+ : (?!443(?:\D|$)) \d+
        ) (?=[/?\#]|$)""",
    re.VERBOSE | re.IGNORECASE,
)


class Refusal(Enum):
    """Why a URL cannot be crawled. Not a str, so it cannot be taken for a URL by mistake."""

    INVALID = "not a valid URL"
    SCHEME = "neither http nor https"
    TOO_LONG = f"longer than {MAX_URL_LENGTH} characters"


def join(url: str, base: str | None = None) -> str | None:
    """The absolute URL by WHATWG, of any scheme, or None where the standard says failure."""
    try:
        return _parse(url, base)
    except ValueError:
        # ada also refuses lone surrogates, which the standard replaces by U+FFFD
        repaired = scalar_values(url)
        return join(repaired, base) if repaired != url else None


def _parse(url: str, base: str | None) -> str:
    return ada_url.normalize_url(url) if base is None else ada_url.join_url(base, url)


def with_scheme(text: str) -> str:
    """A URL as people type it, with the scheme they most likely mean.

    A port other than 443, an IP address or `localhost` is a server without TLS far more often
    than one with it. A scheme is never guessed for a text that has one.
    """
    given = text.strip()
    if "://" in given:
        return given
    return f"{'http' if _LOCAL.match(given) else 'https'}://{given}"


def other_scheme(url: str) -> str:
    """The same URL by https instead of http, or the other way round."""
    name, _, rest = url.partition("://")
    return f"{'https' if name == 'http' else 'http'}://{rest}"


def normalize(url: str, base: str | None = None) -> NormalizedUrl | Refusal:
    """The one spelling of a URL, or why it has none. For many links of a page use `Resolver`."""
    if len(url) > MAX_GIVEN_LENGTH:
        return Refusal.SCHEME if _OTHER_SCHEME.match(url) else Refusal.TOO_LONG
    absolute = join(url, base)
    if absolute is None:
        return Refusal.INVALID
    if not absolute.startswith(("https://", "http://")):
        return Refusal.SCHEME
    for step in _STEPS:
        absolute = step(absolute)
    return _within_limit(absolute)


def _within_limit(url: str) -> NormalizedUrl | Refusal:
    return NormalizedUrl(url) if len(url) <= MAX_URL_LENGTH else Refusal.TOO_LONG


_OTHER_SCHEME = re.compile(r"[\0- ]*(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)


# --- what is done after parsing, in this order ----------------------------------------------


def _without_fragment(url: str) -> str:
    return url.partition("#")[0]


def _without_credentials(url: str) -> str:
    """A name and password in a link would end up in logs and exports; use a header instead."""
    if "@" not in url:
        return url
    start = url.index("//") + 2
    at = url.find("@", start, url.index("/", start))
    return url if at < 0 else url[:start] + url[at + 1 :]


def _with_plain_escapes(url: str) -> str:
    """Escapes of unreserved characters are undone, others get upper-case digits.

    RFC 3986 (6.2.2) calls both spellings equivalent, unlike any other change of escapes.
    """
    return _ESCAPE.sub(_plain_escape, url) if "%" in url else url


# An escape after a stray "%" or "%4" must stay: undone, it would complete another escape.
_ESCAPE = re.compile(r"((?<!%)(?<!%[0-9A-Fa-f]))?%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


def _plain_escape(match: re.Match[str]) -> str:
    character = chr(int(match[2], 16))
    stands_alone = match[1] is not None
    return character if stands_alone and character in _UNRESERVED else match[0].upper()


def _without_tracking(url: str) -> str:
    """Also drops the `?` of an empty query."""
    if "?" not in url:
        return url
    path, _, query = url.partition("?")
    kept = without_tracking(query)
    return f"{path}?{kept}" if kept else path


_STEPS: tuple[Callable[[str], str], ...] = (
    _without_fragment,
    _without_credentials,
    _with_plain_escapes,
    _without_tracking,
)


# --- many links against one base ------------------------------------------------------------

PLAIN_SEGMENT = r"[A-Za-z0-9_~-][A-Za-z0-9_.~-]*+"
# Most links of real pages: nothing in them can be changed by parsing or by any step above. A host
# has a last label that is no number (else it may be an IPv4 address) and no punycode.
_SIMPLE = re.compile(
    r"(https?://(?![^/]*xn--)(?:[a-z0-9-]++\.)*[a-z][a-z0-9-]*+(?=/))?"
    rf"(/?(?:{PLAIN_SEGMENT}/)*(?:{PLAIN_SEGMENT})?)"
    r"(?:#.*)?",
    re.DOTALL,
)


def directory_of(url: str) -> str:
    """The URL up to its last slash, or all of it where its path is missing."""
    path = url.partition("#")[0].partition("?")[0]
    return path[: path.rindex("/") + 1] if path.count("/") > 2 else url


class LinkResolver:
    """Normalizes links against one base, which is taken apart only once."""

    __slots__ = ("_directory", "_origin", "base")

    def __init__(self, base: NormalizedUrl) -> None:
        self.base = base
        self._origin = base[: base.index("/", base.index("//") + 2)]
        self._directory = directory_of(base)

    def resolve(self, href: str) -> NormalizedUrl | Refusal:
        """The same as `normalize(href, base)`, many times faster for repeated links."""
        if len(href) > MAX_CACHED_LENGTH or not NEEDS_NO_PAGE.match(href):
            return normalize(href, self.base)
        return _resolve(self._origin, self._directory, href)


# Whole URLs, and paths without a colon: for them the directory of a page is all that matters,
# while ?page=2, #top, the empty link and the odd "https:" need the page itself.
NEEDS_NO_PAGE = re.compile(r"https?://|[/.A-Za-z0-9_~-][^:]*$")
MAX_CACHED_LENGTH = 512


@lru_cache(maxsize=65_536)
def _resolve(origin: str, directory: str, href: str) -> NormalizedUrl | Refusal:
    """A link of a page in a directory. The menu of a site is the same on all of its pages."""
    simple = _SIMPLE.fullmatch(href)
    if simple is None:
        return normalize(href, directory)
    absolute, path = simple.groups()
    if absolute:
        return _within_limit(absolute + path)
    return _within_limit((origin if path[0] == "/" else directory) + path)


# --- for people -----------------------------------------------------------------------------


def explain_normalization(url: str, base: str | None = None) -> list[str]:
    """Describe the steps of `normalize` for a URL; the last line is the result."""
    steps = _explain_parsing(url, base)
    result = normalize(url, base)
    if isinstance(result, Refusal):
        return [*steps, f"refused: {result.value}"]
    current = join(url, base) or ""
    for step, describe in zip(_STEPS, _DESCRIPTIONS, strict=True):
        changed = step(current)
        if changed != current:
            steps.append(f"{describe(current)}: {changed}")
        current = changed
    return [*steps, f"result: {result}"]


def _explain_parsing(url: str, base: str | None) -> list[str]:
    absolute = join(url, base)
    if absolute is None or absolute == url:
        return []
    against = f" against {base}" if base is not None and join(url) is None else ""
    return [f"parsed{against} (host, port, dot segments, escapes): {absolute}"]


def _describe_tracking(url: str) -> str:
    names = tracking_names(url.partition("?")[2])
    return f"tracking parameters removed ({', '.join(names)})" if names else "empty query dropped"


_DESCRIPTIONS: tuple[Callable[[str], str], ...] = (
    lambda _: "fragment dropped",
    lambda _: "name and password removed",
    lambda _: "escapes in their plain spelling",
    _describe_tracking,
)


_PREFIXES = (
    "utm_",  # Google Analytics and others
    "mtm_",  # Matomo
    "pk_",  # Piwik, as Matomo was called
    "hsa_",  # HubSpot ads
)

_NAMES = name_set(
    "gclid gclsrc dclid gbraid wbraid gad_source srsltid _ga _gl "  # Google
    "fbclid igshid "  # Facebook, Instagram
    "msclkid "  # Microsoft Advertising
    "yclid ymclid _openstat "  # Yandex
    "twclid ttclid li_fat_id "  # X, TikTok, LinkedIn
    "epik rdt_cid sccid "  # Pinterest, Reddit, Snapchat
    "mc_cid mc_eid "  # Mailchimp
    "_hsenc _hsmi "  # HubSpot
    "mkt_tok vero_id "  # Marketo, Vero
    "oly_anon_id oly_enc_id "  # Omeda
    "wickedid irclickid "  # Wicked Reports, Impact
)


def is_tracking(name: str) -> bool:
    """Whether a query parameter of this name only tracks; case does not matter."""
    name = name.lower()
    return name in _NAMES or name.startswith(_PREFIXES)


def tracking_names(query: str) -> list[str]:
    """The names of the tracking parameters in a query, in order."""
    names = (part.partition("=")[0] for part in query.split("&"))
    return [name for name in names if is_tracking(name)]


def without_tracking(query: str) -> str:
    """The query without its tracking parameters; the others keep order and spelling."""
    return "&".join(part for part in query.split("&") if not is_tracking(part.partition("=")[0]))
