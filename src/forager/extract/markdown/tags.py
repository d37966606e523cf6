"""Start and end tags, each parsed once however often it occurs, and the traits of blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from forager.extract.content.boilerplate import (
    HEADINGS,
    SECTION_CLASS,
    ElementVerdict,
    verdict_of,
    verdict_of_names,
)
from forager.extract.content.themes import rank_of, rank_of_id
from forager.extract.text import name_set

_LANGUAGE = re.compile(
    r"(?:^|[\s;])(?:highlight-source-|highlight-text-|language-|lang-|highlight-|brush:\s*|code-"
    r"|syntax-|src-|type-)([a-z0-9+#_.-]+)"
)
# `class="sourceCode python"`, `class="hljs python"`, `class="prettyprint js"`
_AFTER = re.compile(
    r"(?:^|\s)(?:sourcecode|hljs|prettyprint|chroma|syntax|codehilite)\s+([a-z0-9+#]+)"
)
_BARE = re.compile(
    r"(?:^|\s)(rust|python|javascript|typescript|java|kotlin|swift|ruby|php|go|bash|shell|console"
    r"|c|cpp|csharp|css|html|xml|json|yaml|toml|sql|scala|haskell|perl|lua|powershell)(?=\s|$)"
)
_ALIASES = {
    "python3": "python",
    "py": "python",
    "ipython3": "ipython",
    "c++": "cpp",
    "c#": "csharp",
    "shell-session": "console",
    "js-nolint": "js",
} | dict.fromkeys(
    name_set(
        "plain plaintext text txt none nohighlight no-highlight unknown undefined literal-block"
    ),
    "",
)
# words after the same prefixes that are not languages
_NOT_LANGUAGES = re.compile(
    r"block|wrapper|container|toolbar|box|snippet|line|lines|header|example|sample|area|title|content"
    r"|group|switcher|picker|selector|tabs?|highlight|inline|body|view|section|scroll|full|fence"
)


@lru_cache(maxsize=1024)
def language_in(classes: str, bare: bool = False) -> str | None:
    """The language in class names; "" if they declare plain text."""
    classes = classes.lower()
    for pattern in (_LANGUAGE, _AFTER, _BARE) if bare else (_LANGUAGE,):
        for found in pattern.finditer(classes):
            word = found[1].strip(".-_").partition(".")[0]
            if word and not _NOT_LANGUAGES.fullmatch(word.partition("-")[0]):
                return _ALIASES.get(word, word)
    return None


def language_of(attributes: dict[str, str], bare: bool = False) -> str | None:
    """The language that an element claims for the code in it."""
    for name in ("data-lang", "data-language", "lang-name", "data-code-lang", "syntax"):
        if claimed := attributes.get(name):
            word = claimed.strip().lower()
            return _ALIASES.get(word, word) if re.fullmatch(r"[a-z0-9+#_.-]+", word) else None
    classes = attributes.get("class")
    if not classes:
        return None
    return language_in(classes, bare or not _AROUND_CODE.isdisjoint(classes.lower().split()))


# beside one of these classes, the bare name of a language is that of the code
_AROUND_CODE = name_set(
    "code source example listing listingblock snippet codeblock code-block sourcecode source-code"
    " programlisting highlight src"
)


class Traits(NamedTuple):
    """What the attributes of an element say about its content."""

    admonition: bool = False
    section: bool = False  # its id is the anchor of the first heading in it
    language: str | None = None  # of the code in it
    heading: int = 0  # the level of a heading by its role
    signature: bool = False  # what a definition is called, where it is not a heading or term
    owner: bool = False  # its first heading is the title of all that is in it
    nested: bool = False  # a part of a manual, whose title is below that of the part around it
    code: bool = False  # it holds code in separate lines, and no `<pre>`
    math: bool = False  # it holds a formula as TeX


PLAIN = Traits()
_ADMONITION = re.compile(
    r"(?:^|\s)(?:admonition|admonition-\w+|theme-admonition|alert|callout|custom-block|notecard|hint"
    r"|note|notes|warning|tip|caution|important|danger|info-box|alert-\w+|starlight-aside"
    r"|markdown-alert|docs-callout|admonitionblock)(?=\s|$)"
)
_NOTES = frozenset({"div", "aside", "section", "details"})
_LEVELS = frozenset("123456")
_DECLARING = frozenset({"div", "p", "header"})
# Crystal, RDoc, pdoc, odoc, Haddock, HAProxy, Scribble
_SIGNATURES = name_set("signature method-heading attr spec src keyword rforeground")
# pydoctor, Natural Docs, phpDocumentor
_SIGNATURE = re.compile(
    r"(?:^|\s)(?:function[-_]?header|(?:function|method|member|attribute|property|field|macro)[-_]?"
    r"(?:signature|prototype|declaration))(?=\s|$)"
)
_OWNERS = frozenset({"article", "section"})
# DocBook: with several on one page, all have headings of one level
_MANUAL_PARTS = name_set(
    "book part reference chapter appendix preface sect1 sect2 sect3 sect4 sect5 refentry"
    " refsynopsisdiv refsect1 refsect2 refsect3 refsection glossary bibliography"
)
_CODE_BLOCKS = frozenset({"div", "p", "blockquote"})
_CODE_CLASSES = name_set(
    "scodeflow code codeblock code-block codesample code-sample sourcecode source-code program"
    " programlisting verbatim funcsynopsis methodsynopsis fieldsynopsis constructorsynopsis"
)
_MATH = name_set("math mathjax arithmatex formuladsp tex latex katex-display math-display")
# boxes of Scribble, which are no quotations
_LAYOUT_QUOTES = name_set("svinsetflow sinsetflow subflow scodeflow")


def is_quotation(tag: Tag) -> bool:
    """Whether a `<blockquote>` is one, and does not only indent."""
    return _LAYOUT_QUOTES.isdisjoint(tag.attributes.get("class", "").lower().split())


def traits_of(name: str, attributes: dict[str, str]) -> Traits:
    """The traits of a block; `PLAIN` itself if it has none."""
    classes = attributes.get("class", "").lower()
    heading = 0
    if attributes.get("role") == "heading":
        level = attributes.get("aria-level", "")
        heading = int(level) if level in _LEVELS else 2
    found = Traits(
        admonition=name in _NOTES and _ADMONITION.search(classes) is not None,
        section=name == "section" or SECTION_CLASS.search(classes) is not None,
        language=language_of(attributes),
        heading=heading,
        signature=name in _DECLARING
        and (not _SIGNATURES.isdisjoint(classes.split()) or bool(_SIGNATURE.search(classes))),
        owner=name in _OWNERS,
        nested=name == "div" and not _MANUAL_PARTS.isdisjoint(classes.split()),
        code=name in _CODE_BLOCKS and not _CODE_CLASSES.isdisjoint(classes.split()),
        math=not _MATH.isdisjoint(classes.split()),
    )
    return PLAIN if found == PLAIN else found


VOID = name_set(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source"
    " track wbr"
)

Attributes = dict[str, str]

_ATTRIBUTE = re.compile(r'([^\s="]+)(?:="([^"]*)")?')


class Shape(Enum):
    """How a tag changes the open elements."""

    VOID = auto()
    START = auto()
    SPECIAL = auto()  # a start tag whose index is recorded
    END = auto()


@dataclass(slots=True)
class Tag:
    """A tag, shared by all its occurrences and therefore not changed.

    Freezing it would cost more than parsing it, and reading fields of a tuple is four times as
    slow.
    """

    name: str  # "/p" for an end tag
    attributes: Attributes
    verdict: ElementVerdict
    rank: int  # of a main element, by its names
    shape: Shape
    end: str  # the name of the tag that ends this one
    heading: bool = False
    traits: Traits | None = None  # computed on first use
    place: str = ""  # the names of a block: the same on all pages of a site
    is_title: bool = False  # it has the class of a title, and is no heading
    gap: str = ""  # what the page shows before an inline element by its style
    anchor: str = ""  # the name by which links lead to it
    is_math: bool = False  # an inline element with the class of a formula


MAX_REMEMBERED = 400  # characters of a cached tag
_MAX_KNOWN = 16_384
_MAX_CLASSES = 400


def read_tags(raws: list[str]) -> list[Tag]:
    """Tags between `<` and `>` as lexbor serializes them: quoted, escaped, lower-case names."""
    return list(map(_known.__getitem__, raws))


class _Known(dict[str, Tag]):
    """Cache of parsed tags: a page repeats few tags many times, and so do the pages of a site."""

    def __missing__(self, raw: str) -> Tag:
        tag = _parse(raw)
        if len(raw) <= MAX_REMEMBERED:
            if len(self) >= _MAX_KNOWN:
                self.clear()
            self[raw] = tag
        return tag


_known = _Known()
_PLACES = name_set(
    "address article aside blockquote center details dir div dl fieldset figure footer form header"
    " img li main nav ol p section table td ul"
)
_NO_PLACE = name_set("article img li p section")  # their ids depend on their content
_PAGE_STATES = name_set(
    "active collapsed current expanded open selected on this toctree-current is-active"
)
# elements whose ids may be names of boilerplate
_HOLDERS = name_set("div aside details header ul ol p table form")


def _parse(raw: str) -> Tag:
    name, _, rest = raw.partition(" ")
    if name[0] == "/":
        return Tag(name, {}, ElementVerdict.KEEP, 0, Shape.END, "")
    attributes: Attributes = dict(_ATTRIBUTE.findall(rest)) if rest else {}
    if "&" in rest:
        attributes = {key: unescape(value) for key, value in attributes.items()}
    get = attributes.get
    if len(get("class", "")) > _MAX_CLASSES:
        attributes["class"] = attributes["class"][:_MAX_CLASSES]
    named = _by_names(name, get("class", ""), get("role", ""), get("itemprop", ""))
    verdict, rank, is_heading, place, is_section, is_title = named
    identifier = get("id", "")
    if identifier:
        # the ids of sections come from their headings and do not count
        if verdict is ElementVerdict.KEEP and name in _HOLDERS and not is_section:
            verdict = verdict_of_names(identifier.lower())
        rank = max(rank, rank_of_id(name, identifier))
    if name == "object" and "data" not in attributes:  # browsers show the text in it
        verdict = ElementVerdict.KEEP
    if verdict is ElementVerdict.KEEP and _is_hidden(attributes):
        verdict = ElementVerdict.HIDDEN
    if place:
        place = f"{name}#{'' if is_section or name in _NO_PLACE else identifier}{place}"
    shape = Shape.START
    if name in VOID:
        shape = Shape.VOID
    elif rank or verdict is not ElementVerdict.KEEP or name == "table" or is_heading or is_title:
        shape = Shape.SPECIAL
    traits = None if attributes or name in _OWNERS else PLAIN
    end = f"/{name}"
    if name == "span" and MONOSPACE.search(get("style", "")):
        name = "code"
    gap = _gap(attributes) if name in _SPACED and attributes else ""
    return Tag(
        name, attributes, verdict, rank, shape, end, is_heading, traits, place, is_title, gap,
        identifier or (get("name", "") if name == "a" else ""),
        end == "/span" and not _MATH.isdisjoint(get("class", "").lower().split()),
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _by_names(
    name: str, classes: str, role: str, itemprop: str
) -> tuple[ElementVerdict, int, bool, str, bool, bool]:
    """Verdict, rank, the end of its place; whether it is a heading, a section, a title."""
    place = ""
    if name in _PLACES:
        place = f".{'.'.join(sorted(set(classes.split()) - _PAGE_STATES))}"
    return (
        verdict_of(name, classes, role),
        rank_of(name, classes, role, itemprop),
        name in HEADINGS or role == "heading",
        place,
        SECTION_CLASS.search(classes) is not None,
        name in _TITLED and not _TITLES.isdisjoint(classes.lower().split()),
    )


# classes whose style separates an element from the text before it: numpydoc's types of parameters,
# the dots between the parts of a name
_GAPS = {"classifier": " : ", "sep": " ", "separator": " ", "delimiter": " "}
_SPACED = name_set("span a em strong b i code small")
_DISPLAYED = re.compile(r"display\s*:\s*(?:block|flex|grid|inline-block|table|list-item)", re.I)


def _gap(attributes: Attributes) -> str:
    """The separator that a page shows before an inline element, by its class or style."""
    for word in attributes.get("class", "").lower().split():
        if word in _GAPS:
            return _GAPS[word]
    return " " if _DISPLAYED.search(attributes.get("style", "")) else ""


MONOSPACE = re.compile(
    r"font(?:-family)?\s*:[^;:]{0,200}?(?:monospace|courier|consolas|menlo)", re.I
)
_TITLED = name_set("div p span td")
_TITLES = name_set("title page-title pagetitle doc-title doctitle document-title")
RAW_TEXT = name_set("script style iframe noembed noframes xmp plaintext listing")

_DISPLAY_NONE = re.compile(r"display\s*:\s*none", re.IGNORECASE)


def _is_hidden(attributes: Attributes) -> bool:
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or ("style" in attributes and _DISPLAY_NONE.search(attributes["style"]) is not None)
    )


def unescape(text: str) -> str:
    """Undo lexbor's escapes, which are only these."""
    if "&" not in text:
        return text
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')
    return text.replace("&nbsp;", " ").replace("&amp;", "&")
