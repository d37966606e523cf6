"""The facts of a page that a crawl needs: title, links, directives, whether it is an error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from forager.errors import InvalidInput, error_text
from forager.extract.content.state import MAX_TEXT_OF_SHELL, needs_javascript, state_html
from forager.extract.decode import Decoded, decode
from forager.extract.directives import ALLOW_ALL, DEFAULT_AGENT, Directives, header_directives
from forager.extract.generators import UNKNOWN, generator_of
from forager.extract.kinds import ContentKind, kind_of
from forager.extract.links import NO_LINKS, LinkSet, links_in_text, resolve_links
from forager.extract.markdown.formulas import MATH_SCRIPT, formulas_of_scripts
from forager.extract.markup import close_self_closed, cut_hostile_markup
from forager.extract.metadata import (
    Elements,
    Refresh,
    canonical_of,
    collect_elements,
    first_page,
    header_canonicals,
    header_markdown,
    language_of,
    markdown_title,
    meta_robots,
    refresh_of,
    title_of,
    translations_of,
)
from forager.extract.softerror import soft_error
from forager.extract.urls import LinkResolver, NormalizedUrl, Refusal, normalize

Headers = Iterable[tuple[str, str]]
CONVERTED = (ContentKind.RST, ContentKind.PDF, ContentKind.OPENAPI)


@dataclass(frozen=True, slots=True)
class PageFacts:
    """The facts of one response. `truncated` names everything that was cut short."""

    url: NormalizedUrl
    kind: ContentKind
    encoding: str | None = None
    damaged: bool = False  # bytes that are not valid in the encoding were replaced
    title: str | None = None
    language: str | None = None
    translations: tuple[tuple[NormalizedUrl, str], ...] = ()  # URLs with their hreflang
    generator: str = ""  # the program that made the page
    base_url: NormalizedUrl | None = None
    canonical: NormalizedUrl | None = None
    refresh: Refresh | None = None
    markdown: NormalizedUrl | None = None  # where the page says it is as markdown
    may_have_markdown: bool = False  # a sign that its site offers pages as markdown
    directives: Directives = ALLOW_ALL
    outlinks: LinkSet = NO_LINKS
    needs_javascript: bool = False
    asks_password: bool = False  # little more than a login form
    soft_error: str | None = None  # only meaningful where the status was 200
    text_length: int = 0  # visible characters, blanks not counted
    content_hash: bytes | None = None  # None where there is no content to compare
    truncated: tuple[str, ...] = field(default=())


def extract_page(
    body: bytes,
    url: str,
    content_type: str | None = None,
    headers: Headers = (),
    agent: str = DEFAULT_AGENT,
) -> PageFacts:
    """The facts of one response. Never fails on a body; only on a URL that cannot be crawled."""
    return read_page(body, url, content_type, headers, agent)[0]


def read_page(
    body: bytes, url: str, content_type: str | None, headers: Headers, agent: str
) -> tuple[PageFacts, LexborHTMLParser | str | None]:
    """The facts, and the content they were read from: the tree without scripts, or the text."""
    page = normalize(url)
    if isinstance(page, Refusal):
        raise InvalidInput(f"cannot extract from {url!r}: {page.value}")
    facts = _header_facts(page, kind_of(body, content_type, page), headers, agent)
    if facts.kind is ContentKind.OTHER:
        return facts, None
    if facts.kind in CONVERTED:
        return _read_converted(facts, body, content_type, agent)
    decoded = decode(body, content_type)
    if facts.kind in (ContentKind.HTML, ContentKind.XHTML):
        return _read_html(facts, decoded, agent)
    return _read_text(facts, decoded), decoded.text


def _read_converted(
    facts: PageFacts, body: bytes, content_type: str | None, agent: str
) -> tuple[PageFacts, LexborHTMLParser | None]:
    """A page of another format, as HTML. Without text it is no page, and the facts say why."""
    from forager.extract.conversion import NotReadable, convert  # not in every crawl

    try:
        decoded = convert(facts.kind, body, content_type)
    except NotReadable as error:
        return replace(facts, kind=ContentKind.OTHER, soft_error=error_text(error)), None
    page, tree = _read_html(facts, decoded, agent)
    return replace(page, needs_javascript=False, soft_error=None), tree


def _header_facts(
    page: NormalizedUrl, kind: ContentKind, headers: Headers, agent: str
) -> PageFacts:
    robots, links, may_have_markdown = [], [], False
    for name, value in headers:
        lower = name.lower()
        may_have_markdown |= lower == "x-llms-txt" or (lower == "link" and _has_sign(value))
        if lower == "x-robots-tag":
            robots.append(value)
        elif lower == "link":
            links.append(value)
    canonical, markdown = None, None
    if links:
        canonical = canonical_of(header_canonicals(links), LinkResolver(page))
        markdown = first_page(header_markdown(links), LinkResolver(page))
    directives = header_directives(robots, agent) if robots else ALLOW_ALL
    return PageFacts(
        page,
        kind,
        base_url=page,
        canonical=canonical,
        markdown=markdown,
        may_have_markdown=may_have_markdown,
        directives=directives,
    )


# lists of markdown files, a link to the page as markdown, and a link to any
_MARKDOWN_SIGNS = ("llms.txt", "llms-full.txt", "text/markdown", '.md"')


def _has_sign(text: str) -> bool:
    return any(sign in text for sign in _MARKDOWN_SIGNS)


# --- text -----------------------------------------------------------------------------------


def _read_text(facts: PageFacts, decoded: Decoded) -> PageFacts:
    outlinks = links_in_text(decoded.text, LinkResolver(facts.url), facts.url)
    title, cut = markdown_title(decoded.text)
    text_length, content_hash = _weigh(title, decoded.text)
    return replace(
        facts,
        encoding=decoded.encoding,
        damaged=decoded.damaged,
        title=title,
        outlinks=outlinks,
        text_length=text_length,
        content_hash=content_hash,
        truncated=_truncated(cut, outlinks, None),
    )


# --- HTML -----------------------------------------------------------------------------------


def _read_html(
    facts: PageFacts, decoded: Decoded, agent: str
) -> tuple[PageFacts, LexborHTMLParser]:
    text, cut_markup = cut_hostile_markup(decoded.text)
    if MATH_SCRIPT in text:
        text = formulas_of_scripts(text)
    tree = _parsed(close_self_closed(text) if facts.kind is ContentKind.XHTML else text)
    elements = collect_elements(tree)
    resolver = _resolver(facts.url, elements)
    title, cut_title = title_of(elements)
    canonical = canonical_of(elements.canonicals, resolver)
    headings = elements.heading_texts()
    noscript = " ".join(node.text() for node in elements.noscripts)
    asks_password = "password" in text and tree.css_first(_LOGIN_FIELD) is not None
    # frees scripts and all that is in them, so no element found before may be touched after it
    text_length, content_hash = _weigh(title, _visible_text(tree))
    shell = needs_javascript(tree, text_length, elements.scripts, noscript)
    if text_length <= MAX_TEXT_OF_SHELL and (state := _state_tree(text)) is not None:
        tree, shell = state, False
        elements.hrefs |= collect_elements(tree).hrefs
        text_length, content_hash = _weigh(title, _visible_text(tree))
    outlinks = resolve_links(elements.hrefs, resolver, facts.url)
    generator = generator_of(text)
    page = PageFacts(
        url=facts.url,
        kind=facts.kind,
        encoding=decoded.encoding,
        damaged=decoded.damaged,
        title=title,
        language=language_of(elements),
        translations=translations_of(elements, resolver),
        generator=generator,
        base_url=resolver.base,
        canonical=canonical or facts.canonical,
        refresh=refresh_of(elements, resolver, facts.url),
        markdown=first_page(elements.markdown, resolver) or facts.markdown,
        # most sites with markdown are generated, and their pages name the generator
        may_have_markdown=facts.may_have_markdown or generator != UNKNOWN or _has_sign(text),
        directives=facts.directives | meta_robots(elements, agent),
        outlinks=outlinks,
        needs_javascript=shell,
        asks_password=asks_password and text_length <= MAX_TEXT_OF_LOGIN,
        soft_error=soft_error(title, headings, text_length),
        text_length=text_length,
        # all shells of a site look alike, and none of them is a copy of another
        content_hash=None if shell else content_hash,
        truncated=_truncated(cut_title, outlinks, cut_markup),
    )
    return page, tree


def _state_tree(page: str) -> LexborHTMLParser | None:
    """The content that the scripts of a page without text would show, if it has their state."""
    if not any(marker in page for marker in MARKERS):
        return None
    html = state_html(page)
    return _parsed(f"<main>{cut_hostile_markup(html)[0]}</main>") if _TEXT.search(html) else None


# in pages whose framework sends its state along
MARKERS = ("self.__next_f", "__NEXT_DATA__", "__NUXT_DATA__")
_LOGIN_FIELD = "form input[type=password i]"
MAX_TEXT_OF_LOGIN = 3_000
_TEXT = re.compile(r">[^<]{40}")


def _parsed(text: str) -> LexborHTMLParser:
    try:
        return LexborHTMLParser(text)
    except SelectolaxError as error:
        # every text is HTML: only a lack of memory makes the parser fail
        raise MemoryError("the parser got no more memory") from error


def _resolver(page: NormalizedUrl, elements: Elements) -> LinkResolver:
    base = normalize(elements.base, page) if elements.base is not None else page
    return LinkResolver(page if isinstance(base, Refusal) else base)


# every name costs a walk of the tree; what stands in a template is not part of it anyway
_INVISIBLE = ["script", "style", "noscript", "svg"]


def _visible_text(tree: LexborHTMLParser) -> str:
    body: LexborNode | None = tree.body
    if body is None:  # a frameset
        return ""
    body.strip_tags(_INVISIBLE, recursive=True)
    return body.text()


# --- both -----------------------------------------------------------------------------------


_BLANKS = b" \t\n\r\f\v"


def _weigh(title: str | None, visible: str) -> tuple[int, bytes | None]:
    """The number of visible characters, and a hash of them and the title.

    Blanks count for neither, so that markup, nonces and line breaks do not make a page a new one.
    """
    encoded = visible.encode()
    compact = encoded.translate(None, _BLANKS)
    if not compact:
        return 0, None
    length = len(visible) - (len(encoded) - len(compact))
    return length, sha256(b"%b\n%b" % ((title or "").encode(), compact)).digest()


def _truncated(title: bool, outlinks: LinkSet, markup: str | None) -> tuple[str, ...]:
    notes = []
    if markup:
        notes.append(f"markup: {markup}")
    if title:
        notes.append("title: longer than its limit")
    if outlinks.dropped:
        notes.append(f"links: {outlinks.dropped} beyond the limit were dropped")
    return tuple(notes)
