"""Search terms of a section besides its words: identifiers, place on the page, and kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from forager.db.ids import new_id
from forager.documents.page import NewPage, SectionNames, SectionRow, indexed_document
from forager.extract.identifiers import (
    MAX_IDENTIFIERS,
    container_of,
    identifier_lexemes,
    qualified_names,
)
from forager.extract.sections import Section

DEFINITION = "definition"
LISTING = "listing"
# before a name that a section defines, as a separate lexeme
DEFINES = "§="

_MAX_CONTEXT = 400  # characters
# a page that defines things in headings of one form, such as "X Directive", has at least this many
_MIN_ALIKE = 3
_MAX_FORM = 20
_MIN_LISTED = 8
_LISTED_SHARE = 0.6
_LINK = re.compile(r"\[([^\[\]]{0,200})\]\([^()\s]{0,2000}\)")
# the code block that a section opens with, and the names in it that are called or declared
_SIGNATURE = re.compile(r"(?:> ?)?```[^\n]{0,50}\n(.{1,3000}?)```", re.DOTALL)
_CALLED = re.compile(r"([A-Za-z]\w{0,99}) ?\(")
# scripts that are written without blanks, or that attach particles to words
_UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
# bytes that begin none of these characters in UTF-8: found several times as fast as a pattern
_OTHER_BYTES = bytes(set(range(256)) - {0xE0, 0xE1, *range(0xE3, 0xEE)})
_SIGNS = re.compile(r"[\W_]+")
_ASCII_SIGNS = bytes(byte for byte in range(128) if not chr(byte).isalnum())
# the path of most URLs, found in less time than by `urlsplit`
_PATH = re.compile(r"[a-z]+://[^/?#\s]*(/[^?#\s]*)(?:[?#]|\Z)")
_DECORATION = re.compile(r"[\s\d.,:;()<>\[\]]+")
# of a file; at its beginning, a dot ends nothing
_EXTENSION = re.compile(r"(?<=.)\.[A-Za-z]\w{0,5}$")
_MAX_NAME = 100  # characters
_MAX_QUALIFIED = 16
# what separates a name from its container, and the number of its arguments in an anchor
_SEPARATOR = re.compile(r"::|->|(?<=\w)[:#](?=\w)")
_ARITY = re.compile(r"(.*\D)[-/](\d{1,2})")
# the anchor of a definition in Scribble: (def._((lib._racket/list..rkt)._remf*))
_SCRIBBLE = re.compile(r"\((?:def|form)\._.*\._([^()]+)\)+")
_CONTAINER = re.compile(r"[A-Za-z_][\w.:-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSection(SectionRow):
    """A section as it is stored, with the words that search finds it by."""

    head: str
    context: str
    names: SectionNames


def new_sections(page: NewPage) -> list[NewSection]:
    """The sections of a page with their IDs, so that parents and children are written at once."""
    document = indexed_document(page)
    ids = {section.position: new_id() for section in document.sections}
    containers = _containers(document.title, page.url)
    return [
        NewSection(
            id=ids[section.position],
            parent_id=None if section.parent is None else ids[section.parent],
            heading=section.heading,
            level=section.level,
            anchor=section.anchor,
            content=section.content,
            position=section.position,
            anchors=section.anchors,
            head=head_of(document.title, section),
            context=context,
            names=_with_qualified(named, section, containers),
        )
        for section, context, named in zip(
            document.sections,
            contexts(document.title, document.sections, page.url),
            document.names,
            strict=True,
        )
    ]


def canonical_name(name: str) -> str:
    """A name with one kind of separator: `ets:new`, `Ets::new` and `Ets#new()` are `ets.new`."""
    return _SEPARATOR.sub(".", name.lower().removesuffix("()")).lstrip(".")


def _containers(title: str | None, url: str) -> list[str]:
    """The names of what a page is about: its file, and the last word of its title."""
    stem = unquote(urlsplit(url).path).rpartition("/")[2].rpartition(".")[0]
    words = (title or "").split()
    names = (stem, words[-1].rpartition("/")[2] if words else "")
    found = (canonical_name(name) for name in names if _CONTAINER.fullmatch(name))
    return [name for name in dict.fromkeys(found) if name != "index"]


def _with_qualified(
    names: SectionNames, section: Section, containers: Sequence[str]
) -> SectionNames:
    """Add the names that a section defines together with its page, and its anchor."""
    if names.kind == LISTING:
        return names
    members = [name[len(DEFINES) :] for name in names.heading if name.startswith(DEFINES)]
    anchored = _anchor_names(section)
    members = [name for name in (*members, *anchored) if "." not in name]
    qualified = [f"{outer}.{name}" for outer in containers for name in members]
    added = [f"{DEFINES}{name}" for name in (*anchored, *qualified[:_MAX_QUALIFIED])]
    return SectionNames(
        list(dict.fromkeys((*names.heading, *added))),
        list(dict.fromkeys((*added, *names.section)))[:MAX_IDENTIFIERS],
        names.kind,
    )


def _anchor_names(section: Section) -> list[str]:
    """The anchor as a name, unless it only repeats the heading; with the number of arguments."""
    anchor = unquote(section.anchor or "").lower()
    if found := _SCRIBBLE.fullmatch(anchor):
        anchor = found[1]
    if not 1 < len(anchor) <= _MAX_NAME or any(map(str.isspace, anchor)):
        return []
    if found := _ARITY.fullmatch(anchor):
        is_member = section.heading.lower().find(f"{found[1]}(") >= 0
        return [f"{found[1]}/{found[2]}"] if is_member or "/" in anchor else []
    repeats = _SIGNS.sub("", anchor) == _SIGNS.sub("", section.heading.lower())
    return [] if repeats else [canonical_name(anchor)]


def section_names(title: str | None, sections: Sequence[Section]) -> list[SectionNames]:
    """The names and the kind of each section. Pure: it runs where pages are extracted."""
    links = _count_links([section.content for section in sections])
    if _is_listing(*map(sum, zip(*links, strict=True))):
        # an index or a table of contents defines nothing
        return [_names(head_of(title, section), section, (), LISTING) for section in sections]
    container = page_container(title, sections)
    forms = [_form(section) for section in sections]
    counts = Counter(form for _, form in forms)
    found = []
    for section, (name, form), counted in zip(sections, forms, links, strict=True):
        # headings of one form define things on this page
        defined = [name] if name and counts[form] >= _MIN_ALIKE else []
        defined = [*_defined(section, container), *defined]
        kind = LISTING if _is_listing(*counted) else DEFINITION if defined else ""
        found.append(_names(head_of(title, section), section, defined, kind))
    return found


def page_container(title: str | None, sections: Sequence[Section | SectionRow]) -> str:
    """The type or module that a page is about."""
    lead = sections[0].content if sections and not sections[0].level else ""
    first = next((section.heading for section in sections if section.level), "")
    return container_of(title, first, lead)


def head_of(title: str | None, section: Section) -> str:
    """The heading as search sees it: the first section is found by the page's title too."""
    if section.position or not title or title == section.heading:
        return section.heading
    return f"{title}\n{section.heading}"


def contexts(title: str | None, sections: Sequence[Section], url: str) -> list[str]:
    """The context of each section: the page's title and file name, and the headings above it."""
    page = f"{title or ''}\n{path_words(url)}"
    above: list[str] = []
    for section in sections:
        parent = section.parent
        outer = "" if parent is None else f"{above[parent]}\n{sections[parent].heading}"
        above.append(outer[-_MAX_CONTEXT:])
    return [f"{page[:_MAX_CONTEXT]}\n{outer}" for outer in above]


@lru_cache(maxsize=8192)
def path_words(url: str) -> str:
    """The words of a page's file name, or of its folder if that is all there is."""
    found = _PATH.match(url)
    parts = [part for part in unquote(found[1] if found else urlsplit(url).path).split("/") if part]
    if parts and parts[-1].partition(".")[0] in ("", "index"):
        parts.pop()
    # a folder may have a dot in its name: 3.0-announcement/
    stem = _EXTENSION.sub("", parts[-1]) if parts else ""
    return " ".join(_SIGNS.split(stem))


def defined_names(section: SectionRow, container: str) -> list[str]:
    """The names that a section is about, in lower case: by its heading, and qualified."""
    qualified = qualified_names(container, section.heading, section.anchor)
    heading = identifier_lexemes(section.heading.partition("(")[0])
    return [*heading, *(name.lower() for name in qualified)]


def bigrams(text: str) -> list[str]:
    """Pairs of characters in scripts without blanks: any part of a word is found by them."""
    if text.isascii() or not text.encode("utf-8", "surrogatepass").translate(None, _OTHER_BYTES):
        return []
    return [word[at : at + 2] for word in _UNSPACED.findall(text) for at in range(len(word) - 1)]


def _names(head: str, section: Section, defined: Iterable[str], kind: str) -> SectionNames:
    defined = dict.fromkeys(defined)
    heading = dict.fromkeys([*identifier_lexemes(head), *bigrams(head)]) | defined
    heading |= dict.fromkeys(f"{DEFINES}{canonical_name(name)}" for name in defined)
    content = [*identifier_lexemes(section.content), *bigrams(section.content)]
    everything = list(heading | dict.fromkeys(content))[:MAX_IDENTIFIERS]
    return SectionNames(list(heading), everything, kind)


def _defined(section: Section, container: str) -> Iterable[str]:
    """The names that a section defines, rather than mentions, in lower case."""
    yield from map(str.lower, qualified_names(container, section.heading, section.anchor))
    yield from _signature(section.content)


def _form(section: Section) -> tuple[str, str]:
    """The one name in a short heading, and the words around it: ("documentroot", " directive")."""
    heading = section.heading.lower()
    anchor = (section.anchor or "").lower()
    names = [word for word in heading.split() if word.strip("():<>") == anchor]
    names = [anchor] if len(names) == 1 else identifier_lexemes(section.heading)[:2]
    if len(names) != 1 or heading.count(names[0]) != 1:
        return "", ""
    rest = _DECORATION.sub("", heading.replace(names[0], "\0"))
    return (names[0], rest) if len(rest) <= _MAX_FORM else ("", "")


def _signature(content: str) -> list[str]:
    """Functions that the code before the first sentence of a section declares."""
    found = _SIGNATURE.match(content)
    return [] if found is None else [name.lower() for name in _CALLED.findall(found[1])[:16]]


def _count_links(contents: Sequence[str]) -> list[tuple[int, int, int]]:
    """For each text the number of its links, the letters in them, and the letters of the rest."""
    if sum(content.count("](") for content in contents) < _MIN_LISTED:
        return [(0, 0, 0)] * len(contents)
    found = [(content, _LINK.findall(content)) for content in contents]
    return [
        (len(links), _count_letters("".join(links)), _count_letters(_LINK.sub("", content)))
        for content, links in found
    ]


def _is_listing(links: int = 0, linked: int = 0, other: int = 0) -> bool:
    """Whether most of a text is links to what it lists."""
    return links >= _MIN_LISTED and linked > _LISTED_SHARE * (linked + other)


def _count_letters(text: str) -> int:
    """Bytes that are neither blanks nor ASCII punctuation: several times as fast as a pattern."""
    return len(text.encode("utf-8", "surrogatepass").translate(None, _ASCII_SIGNS))
