"""What the head of a page says: title, language, canonical URL, refresh, robots."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from forager.extract.directives import ALLOW_ALL, Directives, meta_directives
from forager.extract.elements import Elements
from forager.extract.text import clip, collapse
from forager.extract.urls import NormalisedUrl, Refusal, Resolver

MAX_TITLE_LENGTH = 512


@dataclass(frozen=True, slots=True)
class Refresh:
    """`<meta http-equiv=refresh>` that leads to another page, after so many seconds."""

    url: NormalisedUrl
    delay: float


def title_of(elements: Elements) -> tuple[str | None, bool]:
    """The title, and whether it was cut."""
    if elements.title is None:
        return None, False
    title, cut = clip(collapse(elements.title.text()), MAX_TITLE_LENGTH)
    return title or None, cut


_FIRST_HEADING = re.compile(r"^#[ \t]+(.+)", re.MULTILINE)


def markdown_title(text: str) -> tuple[str | None, bool]:
    """The first top heading of a markdown text, and whether it was cut."""
    found = _FIRST_HEADING.search(text)
    title, cut = clip(collapse(found[1].rstrip(" \t#")), MAX_TITLE_LENGTH) if found else ("", False)
    return title or None, cut


_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8}){0,4}")


def language_of(elements: Elements) -> str | None:
    """The language a page claims, as a lower-case tag (en, pt-br), if it is one."""
    claims = [elements.html_lang, *_metas_called(elements, "http-equiv", "content-language")]
    for claim in claims:
        tag = (claim or "").partition(",")[0].strip().replace("_", "-")
        if _LANGUAGE.fullmatch(tag):
            return tag.lower()
    return None


def canonical_of(hrefs: Iterable[str], resolver: Resolver) -> NormalisedUrl | None:
    """The canonical URL, unless several are named: then none of them can be trusted."""
    urls = {url for url in map(resolver.resolve, hrefs) if not isinstance(url, Refusal)}
    return urls.pop() if len(urls) == 1 else None


_LINK_HEADER = re.compile(r"<([^<>]*)>([^<>]*)")
_REL_CANONICAL = re.compile(
    r";\s*+rel\s*+=\s*+\"?(?:[^\";,]*\s)?canonical(?=[\s\";,]|$)", re.IGNORECASE
)


def header_canonicals(values: Iterable[str]) -> list[str]:
    """The canonical URLs that Link headers name."""
    links = (link for value in values for link in _LINK_HEADER.finditer(value))
    return [link[1] for link in links if _REL_CANONICAL.search(link[2])]


_REFRESH = re.compile(
    r"\s*(\d{1,9})(?:\.[\d.]*)?\s*(?:[;,]\s*|\s)(?:url\s*=\s*)?(?:\"([^\"]*).*|'([^']*).*|(.*))",
    re.IGNORECASE | re.DOTALL,
)


def refresh_of(elements: Elements, resolver: Resolver, page: str) -> Refresh | None:
    """Where the page sends its readers; a page that only reloads itself sends them nowhere."""
    for content in _metas_called(elements, "http-equiv", "refresh"):
        parts = _REFRESH.fullmatch(content.strip())
        target = (parts[2] or parts[3] or parts[4] or "").strip() if parts else ""
        url = resolver.resolve(target) if target else Refusal.INVALID
        if parts and not isinstance(url, Refusal) and url != page:
            return Refresh(url, float(parts[1]))
    return None


def meta_robots(elements: Elements, agent: str) -> Directives:
    """The directives of all meta elements together."""
    result = ALLOW_ALL
    for meta in elements.metas:
        result |= meta_directives(meta.get("name") or "", meta.get("content") or "", agent)
    return result


def _metas_called(elements: Elements, attribute: str, name: str) -> list[str]:
    return [
        meta.get("content") or ""
        for meta in elements.metas
        if (meta.get(attribute) or "").strip().lower() == name
    ]
