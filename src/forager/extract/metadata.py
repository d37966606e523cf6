"""Metadata of a page: title, language, canonical URL, refresh, robots; and its links.

The elements are collected in one walk of the tree. An undeclared language is detected by the
script of the text, else by its most common words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from selectolax.lexbor import LexborHTMLParser, LexborNode

from forager.extract.directives import ALLOW_ALL, Directives, meta_directives
from forager.extract.kinds import MARKDOWN_TYPE, media_type
from forager.extract.links import Hrefs, add_href, is_page_link
from forager.extract.text import clip, collapse
from forager.extract.urls import LinkResolver, NormalizedUrl, Refusal

MAX_TITLE_LENGTH = 512


@dataclass(frozen=True, slots=True)
class Refresh:
    """`<meta http-equiv=refresh>` that leads to another page, after a delay in seconds."""

    url: NormalizedUrl
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


def translations_of(
    elements: Elements, resolver: LinkResolver
) -> tuple[tuple[NormalizedUrl, str], ...]:
    """The URLs of the page in other languages, with their languages."""
    found = ((resolver.resolve(href), tag) for href, tag in elements.translations)
    return tuple(
        (url, tag.lower())
        for url, tag in found
        if not isinstance(url, Refusal) and _LANGUAGE.fullmatch(tag)
    )


def canonical_of(hrefs: Iterable[str], resolver: LinkResolver) -> NormalizedUrl | None:
    """The canonical URL; None if there are several."""
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


_REL_ALTERNATE = re.compile(
    r";\s*+rel\s*+=\s*+\"?(?:[^\";,]*\s)?alternate(?=[\s\";,]|$)", re.IGNORECASE
)
_TYPE_MARKDOWN = re.compile(r";\s*+type\s*+=\s*+\"?text/markdown(?=[\s\";,]|$)", re.IGNORECASE)


def header_markdown(values: Iterable[str]) -> list[str]:
    """The addresses that Link headers name for the page as markdown."""
    links = (link for value in values for link in _LINK_HEADER.finditer(value))
    return [
        link[1]
        for link in links
        if _REL_ALTERNATE.search(link[2]) and _TYPE_MARKDOWN.search(link[2])
    ]


def first_page(hrefs: Iterable[str], resolver: LinkResolver) -> NormalizedUrl | None:
    """The first of some addresses that is that of a page."""
    urls = (resolver.resolve(href) for href in hrefs)
    return next((url for url in urls if not isinstance(url, Refusal)), None)


_REFRESH = re.compile(
    r"\s*(\d{1,9})(?:\.[\d.]*)?\s*(?:[;,]\s*|\s)(?:url\s*=\s*)?(?:\"([^\"]*).*|'([^']*).*|(.*))",
    re.IGNORECASE | re.DOTALL,
)


def refresh_of(elements: Elements, resolver: LinkResolver, page: str) -> Refresh | None:
    """The page that a refresh leads to; None for a page that only reloads itself."""
    for content in _metas_called(elements, "http-equiv", "refresh"):
        parts = _REFRESH.fullmatch(content.strip())
        target = (parts[2] or parts[3] or parts[4] or "").strip() if parts else ""
        url = resolver.resolve(target) if target else Refusal.INVALID
        if parts and not isinstance(url, Refusal) and url != page:
            return Refresh(url, float(parts[1]))
    return None


def meta_robots(elements: Elements, agent: str) -> Directives:
    """The combined directives of all meta elements."""
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


# one selector, because every query walks the whole tree
_INTERESTING = (
    "a[href], area[href], iframe[src], frame[src], link[href], base[href],"
    " meta[content], title, h1, noscript, noframes, script[src]"
)
_MAX_KEPT = 100  # elements of one kind of which a real page has a few
_MAX_HEADING = 200

Attributes = Mapping[str, str | None]
_Kept = TypeVar("_Kept")


@dataclass(slots=True)
class Elements:
    """The result of `collect_elements`; no URL is resolved yet, since `<base>` may come late."""

    hrefs: Hrefs = field(default_factory=dict)
    base: str | None = None
    canonicals: list[str] = field(default_factory=list)
    markdown: list[str] = field(default_factory=list)
    translations: list[tuple[str, str]] = field(default_factory=list)
    metas: list[Attributes] = field(default_factory=list)
    html_lang: str | None = None
    title: LexborNode | None = None
    headings: list[LexborNode] = field(default_factory=list)
    noscripts: list[LexborNode] = field(default_factory=list)
    scripts: int = 0

    def heading_texts(self) -> tuple[str, ...]:
        return tuple(clip(collapse(node.text()), _MAX_HEADING)[0] for node in self.headings)


def collect_elements(tree: LexborHTMLParser) -> Elements:
    found = Elements()
    if tree.root is not None:
        found.html_lang = tree.root.attributes.get("lang")
    for node in tree.css(_INTERESTING):
        tag = node.tag
        if tag in ("a", "area"):
            attributes = node.attributes
            # links of SVG images, which the selector finds too
            href = attributes.get("href", attributes.get("xlink:href"))
            add_href(found.hrefs, href, attributes.get("rel"))
        elif tag in ("iframe", "frame"):
            add_href(found.hrefs, node.attributes.get("src"))
        else:
            _collect_rare(found, tag or "", node)
    return found


def _collect_rare(found: Elements, tag: str, node: LexborNode) -> None:
    if tag == "link":
        _collect_link(found, node.attributes)
    elif tag == "meta":
        _keep(found.metas, node.attributes)
    elif tag == "title":
        # SVG images have titles too
        if found.title is None and node.parent is not None and node.parent.tag != "svg":
            found.title = node
    elif tag == "base":
        if found.base is None:
            found.base = node.attributes.get("href")
    elif tag == "h1":
        _keep(found.headings, node)
    elif tag == "noscript":
        _keep(found.noscripts, node)
    elif tag == "noframes":
        _collect_noframes(found, node)
    else:
        found.scripts += 1


def _collect_noframes(found: Elements, node: LexborNode) -> None:
    """Add the links for browsers without frames, which are text to the parser."""
    for link in LexborHTMLParser(node.text()).css("a[href]"):
        add_href(found.hrefs, link.attributes.get("href"), link.attributes.get("rel"))


def _collect_link(found: Elements, attributes: Attributes) -> None:
    href = attributes.get("href")
    if href and "canonical" in (attributes.get("rel") or "").lower().split():
        _keep(found.canonicals, href)
    elif href and _is_markdown(attributes):
        _keep(found.markdown, href)
    elif is_page_link(attributes):
        add_href(found.hrefs, href)
        if href and (language := attributes.get("hreflang")):
            _keep(found.translations, (href, language))


def _is_markdown(attributes: Attributes) -> bool:
    """Whether a link leads to the page as markdown: the same page, not another one to crawl."""
    is_alternate = "alternate" in (attributes.get("rel") or "").lower().split()
    return is_alternate and media_type(attributes.get("type")) == MARKDOWN_TYPE


def _keep(kept: list[_Kept], item: _Kept) -> None:
    if len(kept) < _MAX_KEPT:
        kept.append(item)


_MAX_TEXT = 2_000
_MIN_WORDS = 20
_MIN_SHARE = 0.08  # of all words; running text of these languages has 0.2 to 0.4
_SURELY_ENGLISH = 8
_MIN_LEAD = 1.3  # times as many as the next language

_WORDS = {
    "en": "the of and to in is that for it with as are this be on by or from an which you not can",
    "de": "der die das und ist nicht ein eine zu den mit von auf für dem sich des im werden wird",
    "fr": "le la les des et est une dans que pour qui sur pas avec par plus ce sont vous au du",
    "es": "el los las que una por para con del se es como más está su al lo pero sus este puede",
    "it": "il di che per una sono con non del della è si nel alla gli più anche come questo viene",
    "pt": "o os que uma para com não do da em é um dos como mais foi ao ser pode são você das",
    "nl": "de het een van en is dat op te voor niet met zijn aan er ook als bij deze worden kan",
    "sv": "och att det som en är på för med av den till inte ett om kan har du eller detta",
    "da": "og at det er en til på som for med af ikke den der kan et har du eller fra",
    "no": "og det er en som på for med av ikke til å kan den et har du eller fra dette",
    "fi": "ja on ei että se ovat voi tai kun mutta myös joka jos ole sen niin kuin tämä voit",
    "pl": "i w nie na się z do jest to że dla jak przez po lub od można są tym jest",
    "cs": "a se na je v že to s pro jako nebo které by být pokud jsou k o jsem může",
    "hu": "a az és hogy nem egy is ez van meg vagy csak mint ha de kell lehet azt már",
    "ro": "și de la în este cu pe nu care un o să din mai pentru sau sunt fi acest se",
    "tr": "ve bir bu için ile de da olarak daha gibi çok olan veya kadar sonra değil her",
    "id": "yang dan di untuk dengan dari ini pada adalah tidak dalam akan dapat atau kita ke itu",
    "vi": "và của là có một các không cho được với trong khi này để những người bạn",
}
_LANGUAGES_OF: dict[str, list[str]] = {}
for _language, _words in _WORDS.items():
    for _word in set(_words.split()):
        _LANGUAGES_OF.setdefault(_word, []).append(_language)

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),  # before Chinese: Japanese uses its characters too
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("uk", re.compile("[іїєґІЇЄҐ]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("fa", re.compile("[پچژگ]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
)
_SHARES = {"ja": 0.02, "uk": 0.01, "fa": 0.01}
_NOISE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\]\([^)]*\)|https?://\S+", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")


def detect_language(markdown: str) -> str | None:
    """A two-letter tag, or None if the text is too short or too mixed."""
    text = markdown[:_MAX_TEXT]
    if text.count(" the ") >= _SURELY_ENGLISH:  # a shortcut for most pages
        return "en"
    text = _NOISE.sub(" ", text)
    return _by_script(text) or _by_words(_WORD.findall(text.lower()))


def _by_script(text: str) -> str | None:
    if text.isascii():
        return None
    letters = max(1, sum(map(str.isalpha, text)))
    for language, script in _SCRIPTS:
        if len(script.findall(text)) / letters > _SHARES.get(language, 0.2):
            return language
    return None


def _by_words(words: list[str]) -> str | None:
    if len(words) < _MIN_WORDS:
        return None
    counts = dict.fromkeys(_WORDS, 0)
    for word in filter(_LANGUAGES_OF.__contains__, words):
        for language in _LANGUAGES_OF[word]:
            counts[language] += 1
    (best, most), (_, second) = sorted(counts.items(), key=lambda item: -item[1])[:2]
    sure = most >= _MIN_SHARE * len(words) and most >= _MIN_LEAD * second
    return best if sure else None
