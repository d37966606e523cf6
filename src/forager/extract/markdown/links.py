"""Links of markdown: relative to its page, because absolute ones can be most of the characters; or
absolute, for markdown that is read at another address than it was written for."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from urllib.parse import urljoin, urlsplit

# targets as the converter writes them: without spaces and brackets
_LINK_OR_CODE = re.compile(r"(`+)|(\]\()(https?://[^\s()<>]+)(?=\))", re.IGNORECASE)
# any target, also those of definitions
_ANY_LINK_OR_CODE = re.compile(
    r"(`+)|(\]\(\s*|^ {0,3}\[[^\]\n]{1,200}\]:[ \t]+)(<[^<>\n]*>|[^\s()<>]+)(?=[\s)]|\Z)",
    re.MULTILINE,
)
_FENCE = re.compile(r" {0,3}(?:[-*+>]|\d+[.)])?[ >]*(`{3,}|~{3,})")


class LinkStyle(StrEnum):
    """Whether links to pages of the same host are written relative to their page."""

    RELATIVE = "relative"
    ABSOLUTE = "absolute"


def relative_links(markdown: str, page_url: str) -> str:
    """Markdown whose links to the host of its page are relative; code stays as it is."""
    return _with_links(markdown, _LINK_OR_CODE, lambda url: _relative(url, page_url))


def absolute_links(markdown: str, base: str, page_of: Callable[[str], str]) -> str:
    """Markdown with absolute links, each led on by `page_of`; code stays as it is."""

    def absolute(target: str) -> str:
        plain = target[1:-1] if target.startswith("<") else target
        try:
            url = page_of(urljoin(base, plain))
        except ValueError:
            return target
        return f"<{url}>" if re.search(r"[\s()<>]", url) else url

    return _with_links(markdown, _ANY_LINK_OR_CODE, absolute)


def _with_links(markdown: str, pattern: re.Pattern[str], change: Callable[[str], str]) -> str:
    """Markdown in which the targets of links are changed; code stays as it is."""
    known: dict[str, str] = {}
    parts: list[str] = []
    prose: list[str] = []
    fence = ""
    for line in markdown.splitlines(keepends=True):
        opened = _FENCE.match(line)
        ends = opened and opened[1].startswith(fence) and not line[opened.end() :].strip()
        if opened and (ends or not fence):
            fence = "" if fence else opened[1]
            parts += [_rewritten("".join(prose), pattern, change, known), line]
            prose = []
        elif fence:
            parts.append(line)
        else:
            prose.append(line)
    return "".join([*parts, _rewritten("".join(prose), pattern, change, known)])


def _rewritten(
    text: str, pattern: re.Pattern[str], change: Callable[[str], str], known: dict[str, str]
) -> str:
    parts: list[str] = []
    open_runs: set[str] = set()  # runs of backticks that nothing closes
    end = 0
    while found := pattern.search(text, end):
        run, opening, url = found.groups()
        parts.append(text[end : found.start()])
        end = found.end()
        if url:
            if url not in known:
                known[url] = change(url)
            parts.append(opening + known[url])
            continue
        if run not in open_runs:
            closing = re.compile(rf"(?<!`){run}(?!`)").search(text, end)
            end = closing.end() if closing else end
            if not closing:
                open_runs.add(run)
        parts.append(text[found.start() : end])
    return "".join([*parts, text[end:]])


def _relative(url: str, page_url: str) -> str:
    """The shortest reference from a page to a URL that every reader resolves to it."""
    try:
        page, target = urlsplit(page_url), urlsplit(url)
    except ValueError:
        return url
    if (page.scheme, page.netloc) != (target.scheme, target.netloc):
        return url
    rest = url.partition("#")[0].partition("?")[0]
    tail = url[len(rest) :]
    if url.startswith(f"{page_url.partition('#')[0]}#"):
        ways = [f"#{target.fragment}"]
    else:
        folders, wanted = page.path.split("/")[:-1], target.path.split("/")
        same = 0
        while same < min(len(folders), len(wanted) - 1) and folders[same] == wanted[same]:
            same += 1
        steps = [".."] * (len(folders) - same) + wanted[same:]
        ways = ["/".join(steps) + tail, target.path + tail]
    good = [way for way in ways if way and urljoin(page_url, way) == url]
    return min(good, key=len, default=url)
