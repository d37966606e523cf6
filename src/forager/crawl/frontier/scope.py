"""Which URLs belong to a crawl, and which of those are left out by a rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from forager.errors import InvalidInput
from forager.extract.hosts import host_of, registrable_domain
from forager.extract.languages import language_of_url, primary_language
from forager.extract.urls import NormalizedUrl
from forager.extract.wildcard import Pattern, path_and_query

_IMAGES = "avif bmp gif heic heif ico jfif jpeg jpg jxl png psd svg svgz tif tiff webp"
_SOUND = "aac aif aiff flac m4a mp3 oga ogg opus wav weba wma"
_VIDEO = "3gp avi flv m4v mkv mov mp4 mpeg mpg ogv webm wmv"
_ARCHIVES = "7z bz2 cab gz lzma rar tar tbz2 tgz txz xz zip zst"
_PROGRAMS = "apk deb dmg exe iso jar msi rpm whl"
_FONTS = "eot otf ttf woff woff2"
_PARTS_OF_PAGES = "css js mjs wasm"

MEDIA_EXTENSIONS = frozenset(
    " ".join((_IMAGES, _SOUND, _VIDEO, _ARCHIVES, _PROGRAMS, _FONTS, _PARTS_OF_PAGES)).split()
)


# at least two letters: /docs/3.11 and /docs/v2.x are folders
_PAGE_EXTENSION = re.compile(r"\.[A-Za-z]{2,5}\d?$")


class ScopeMode(StrEnum):
    """How far a crawl may go from its seeds."""

    HOST = "host"
    DOMAIN = "domain"
    PREFIX = "prefix"


class ScopeReason(StrEnum):
    """Reasons not to crawl a URL. The first three mean that it belongs to another site."""

    OTHER_HOST = "other_host"
    OTHER_DOMAIN = "other_domain"
    OTHER_PREFIX = "other_prefix"
    EXCLUDE = "exclude"
    INCLUDE = "include"
    TYPE = "type"
    DEPTH = "depth"
    LANGUAGE = "language"


@dataclass(frozen=True, slots=True)
class ScopeRule:
    """The rule that refuses a URL: a reason for counts, and a description."""

    reason: ScopeReason
    message: str


_NOT_INCLUDED = ScopeRule(ScopeReason.INCLUDE, "no include pattern matches")


class CrawlScope:
    """The limits of one crawl. All URLs given to it are normalized ones.

    `www.` and the scheme make no difference to a host: sites mix them in their own links. A port
    does. The seeds themselves are always crawled: they were requested by name.
    """

    def __init__(
        self,
        seeds: Sequence[NormalizedUrl],
        mode: ScopeMode = ScopeMode.HOST,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        max_depth: int | None = None,
        language: str | None = None,
    ) -> None:
        if not seeds:
            raise InvalidInput("a crawl needs a URL to start from")
        self.mode = mode
        self._include = [Pattern.compile(text) for text in include]
        self._exclude = [Pattern.compile(text) for text in exclude]
        self._max_depth = max_depth
        self.language = language and primary_language(language)
        # a site that names languages in its URLs may name any
        self._names_languages = any(language_of_url(seed, doubtful=True) for seed in seeds)
        self._seeds: set[str] = set()
        self._hosts: set[str] = set()
        self._domains: set[str] = set()
        # hosts with a path that ends with a slash
        self._folders: dict[str, None] = {}
        for seed in seeds:
            self.add_seed(seed)

    def add_seed(self, seed: NormalizedUrl) -> None:
        """Widen the scope by a seed, or by the target of one that redirects."""
        self._seeds.add(seed)
        self._hosts.add(_site(host_of(seed)))
        self._domains.add(registrable_domain(host_of(seed)))
        self._folders[_folder(seed)] = None

    def refusal(self, url: NormalizedUrl, depth: int = 0) -> ScopeRule | None:
        """The rule that refuses a URL found `depth` links from a seed; None if it is crawled."""
        if url in self._seeds:
            return None
        return self.outside(url) or self._excluded(url, depth)

    def outside(self, url: str) -> ScopeRule | None:
        """The rule by which a URL is out of scope; None if the crawl accounts for it."""
        if url in self._seeds:
            return None
        host = host_of(url)
        if self.mode is ScopeMode.DOMAIN:
            if registrable_domain(host) in self._domains:
                return None
            return ScopeRule(ScopeReason.OTHER_DOMAIN, f"{host} belongs to another domain")
        if _site(host) not in self._hosts:
            return ScopeRule(ScopeReason.OTHER_HOST, f"{host} is another host")
        if self.mode is ScopeMode.PREFIX and not self._is_below(host, url):
            return ScopeRule(ScopeReason.OTHER_PREFIX, "its path is outside the start's folder")
        return None

    def _is_below(self, host: str, url: str) -> bool:
        place = _site(host) + path_and_query(url)
        if place.startswith(tuple(self._folders)):
            return True
        # a folder itself counts with and without its last slash
        return place.partition("?")[0] + "/" in self._folders

    def translation(self, url: str) -> ScopeRule | None:
        """The rule that refuses a URL because it names another language than the crawl's."""
        if self.language is None:
            return None
        found = language_of_url(url, doubtful=self._names_languages)
        return None if found in (None, self.language) else translation_rule(found, self.language)

    def _excluded(self, url: str, depth: int) -> ScopeRule | None:
        # exclude before include: who names a page to leave out means it
        for pattern in self._exclude:
            if pattern.matches(url):
                return ScopeRule(ScopeReason.EXCLUDE, f"the exclude pattern {pattern.text} matches")
        if self._include and not any(pattern.matches(url) for pattern in self._include):
            return _NOT_INCLUDED
        extension = _extension(url)
        if extension in MEDIA_EXTENSIONS:
            return ScopeRule(ScopeReason.TYPE, f".{extension} is not a page")
        if (translated := self.translation(url)) is not None:
            return translated
        if self._max_depth is not None and depth > self._max_depth:
            return ScopeRule(ScopeReason.DEPTH, f"it is more than {self._max_depth} links away")
        return None


def translation_rule(found: str, wanted: str) -> ScopeRule:
    """The rule that excludes a page in another language."""
    return ScopeRule(ScopeReason.LANGUAGE, f"its language is {found}, not {wanted}")


def _folder(seed: str) -> str:
    """`/docs/intro.html` lies in `/docs/`; `/docs` is that folder, for it looks like no file."""
    path = path_and_query(seed).partition("?")[0]
    parent, _, last = path.rpartition("/")
    folder = path if last and not _PAGE_EXTENSION.search(last) else parent
    return f"{_site(host_of(seed))}{folder}/"


def _site(host: str) -> str:
    return host.removeprefix("www.")


def _extension(url: str) -> str:
    path = path_and_query(url).partition("?")[0]
    name = path[path.rfind("/") + 1 :]
    return name.rpartition(".")[2].lower() if "." in name else ""
