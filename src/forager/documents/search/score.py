"""The score of a section for a query, from the section and its page."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul

from forager.documents.names import path_words
from forager.documents.search.tsquery import EMPTY, TsQuery
from forager.documents.versions import name_parts
from forager.extract.languages import primary_language

_WORDS = re.compile(r"\w+")
# separators in titles: "tempfile — Generate files · Python documentation"
_TITLE_END = re.compile(r"\s+[-\u2013\u2014|\u00b7\u00bb]+\s+")
_TITLE_HEAD = re.compile(r".{1,80}?(?::|\s+[-\u2013\u2014|\u00b7\u00bb]+)\s+(?=\S)")
# titles that begin with the name of the site, and their share
_MIN_TITLES = 3
_MIN_SHARE = 0.2
# the arguments after a name in a heading
_ARGUMENTS = re.compile(r"(?<=\w)[(\[].*", re.DOTALL)
# pages that mention everything: what changed in a version, and explanations of single words
_CHANGES = re.compile(
    r"\d{4}-\d\d-\d\d|\b(?:release|version)s? ?v?\d|\bv?\d+\.\d+\.\d|change ?log|release notes"
    r"|what.s new|\bhistory of changes|\b(?:old)?news\b|\bannouncement$|\brel ?notes\b",
    re.IGNORECASE,
)
# pages that list what others explain: "Index", "Concept Index", "Table of Contents"
_INDEX = re.compile(
    r"(?:(?:the|general|concept|global|\w+s?|key ?word|\w+ names?) )?(?:index|contents|indices)"
    r"|(?:table of|all) (?:contents|\w+)|list of (?:all )?\w+",
    re.IGNORECASE,
)
_OPTION = re.compile(r"--?\w[\w-]*")
_GLOSSARY = re.compile(r"\bgloss(?:ary|aire|ar|ario)\b|用語|용어", re.IGNORECASE)
_ENDINGS = ("ings", "ying", "ing", "ies", "ied", "es", "ed", "s", "e", "y")
# the last letter of "run" in "running"; not of "add" in "adding", and "settings" are not "set"
_DOUBLED = re.compile(r"([bgmnpr])\1$")
_AFTER_DOUBLED = ("ing", "ed")
# PostgreSQL's rank of one word in a heading; nothing else reaches it
IN_HEADING = 0.6
# lexemes of a section of ordinary length
_ORDINARY = 80


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each signal; 0 disables it."""

    text: float = 1.0
    near: float = 0.5
    coverage: float = 1.0
    heading: float = 1.0
    exact_heading: float = 0.8
    phrase: float = 0.5
    title: float = 0.5
    exact_title: float = 1.2
    # the page is named like the query, whichever way it is written
    own_page: float = 0.6
    definition: float = 1.2
    page: float = 0.3
    lead: float = 0.15
    inlinks: float = 0.3
    # factors
    listing: float = 0.5
    changes: float = 0.3
    glossary: float = 0.35
    # an option of a command that the query does not name
    option: float = 0.5
    length: float = 0.2
    language: float = 0.05


@dataclass(frozen=True, slots=True)
class SectionPlace:
    """The page and the position of a section."""

    document_id: int
    position: int
    heading: str
    level: int
    beginning: str
    source_id: str
    title: str
    url: str
    language: str
    last_position: int
    # pages that link to its page
    inlinks: int = 0
    # the heading above it
    parent: str = ""


def page_names(titles: Iterable[str]) -> dict[str, str]:
    """The name of each page by its title: "tempfile" of "tempfile — Generate files".

    A beginning that many titles of a site have is the name of the site, or of one of its books.
    """
    heads = {title: _head(title) for title in titles}
    counts = Counter(heads.values())
    least = max(_MIN_TITLES, _MIN_SHARE * len(heads))
    return {
        title: _TITLE_END.split(title[len(head) if counts[head] >= least else 0 :], maxsplit=1)[0]
        for title, head in heads.items()
    }


def _head(title: str) -> str:
    """The first part of a title with the separator after it; empty if it has only one part."""
    found = _TITLE_HEAD.match(title)
    return found[0] if found else ""


NOWHERE = SectionPlace(0, 0, "", 0, "", "", "", "", "", 0)


@dataclass(slots=True)
class Candidate:
    """A section that matches. `ranks`, `heads` and `defines` are per term of the query."""

    document_id: int
    position: int
    # PostgreSQL's rank of each term, and whether the heading or a name in it matches
    ranks: Sequence[float]
    heads: Sequence[bool]
    # number of different words
    length: int
    defines: Sequence[bool]
    is_listing: bool
    # the proximity of the terms
    near: float
    # further sections that say the same
    repeats: int = 0
    place: SectionPlace = NOWHERE
    # the name of its page, without that of the site
    page_name: str = ""
    score: float = 0.0
    is_preferred: bool = False
    # found by its meaning, not by its words
    is_similar: bool = False
    # the query that found it
    query: TsQuery = EMPTY
    config: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the section has all terms of the query."""
        return all(map(any, zip(self.ranks, self.heads, strict=True)))

    @property
    def in_heading(self) -> list[bool]:
        pairs = zip(self.heads, self.ranks, strict=True)
        return [head or rank >= IN_HEADING for head, rank in pairs]


@dataclass(frozen=True, slots=True)
class WeightedTerms:
    """The terms of a query with their weights: rare words weigh more than common ones."""

    texts: Sequence[str]
    # the words of each term that is a name in camel case
    parts: Sequence[str]
    rarity: Sequence[float]
    # the query with its common words
    typed: str
    # the language to prefer, and that of pages that name none
    language: str
    source_language: str

    def share(self, matched: Iterable[bool | float]) -> float:
        """The matched share of the query, from 0 to 1."""
        return float(sum(map(mul, self.rarity, matched)) / sum(self.rarity))


def rarity(sections_with: float, sections: float) -> float:
    """The weight of a word by how few sections have it."""
    return math.log(1 + (sections + 1) / (sections_with + 0.5)) / math.log(2 + sections)


def score(candidates: Sequence[Candidate], terms: WeightedTerms, weights: Weights) -> None:
    """Score candidates; those of pages with several good sections come first."""
    pages: dict[int, list[Candidate]] = {}
    name_pages(candidates)
    for candidate in candidates:
        language = primary_language(candidate.place.language) or terms.source_language
        candidate.is_preferred = language == terms.language
        candidate.score = _score(candidate, terms, weights)
        pages.setdefault(candidate.document_id, []).append(candidate)
    for sections in pages.values():
        sections.sort(key=lambda each: -each.score)
        covered = terms.share(
            any(each.ranks[n] for each in sections) for n in range(len(terms.texts))
        )
        others = sum(each.score for each in sections[1:4]) / 3
        for each in sections:
            each.score += weights.page * (others / 2 + covered - 0.5)


def name_pages(candidates: Sequence[Candidate]) -> None:
    """Set the name of each candidate's page, by the titles of all of them."""
    titles: dict[str, list[str]] = {}
    for each in candidates:
        titles.setdefault(each.place.source_id, []).append(each.place.title)
    names = {source: page_names(of_source) for source, of_source in titles.items()}
    for each in candidates:
        each.page_name = names[each.place.source_id][each.place.title]


def _score(candidate: Candidate, terms: WeightedTerms, weights: Weights) -> float:
    place, page = candidate.place, candidate.page_name
    heading = terms.share(candidate.in_heading)
    # the longer a text, the more words it has by chance
    long = 1 / (1 + weights.length * math.log1p(max(0, candidate.length / _ORDINARY - 1)))
    long = heading + (1 - heading) * long
    defines = terms.share(candidate.defines)
    site = name_parts(place.source_id)
    title = _overlap(page, terms) * (1 + _precision(page, terms, site)) / 2
    parts = {
        "text": weights.text * terms.share(candidate.ranks) * long,
        "near": weights.near * candidate.near / (candidate.near + 0.1),
        "coverage": weights.coverage * terms.share(r > 0 for r in candidate.ranks) ** 2 * long,
        "heading": weights.heading * heading,
        "exact_heading": weights.exact_heading
        * heading
        * max(defines, _precision(place.heading, terms)),
        "phrase": weights.phrase * _has_phrase(place.heading, terms),
        "title": weights.title * title,
        "definition": weights.definition * defines**2,
        "inlinks": weights.inlinks * math.log2(1 + place.inlinks) / 10,
    }
    if _letters(terms.typed) in _spellings((page, path_words(place.url)), site):
        parts["own_page"] = weights.own_page
    if candidate.position == 0:
        parts["lead"] = weights.lead * heading
        parts["exact_title"] = weights.exact_title * _exactness(candidate, terms) ** 2
    return sum(parts.values()) * _factor(candidate, terms, weights)


def _factor(candidate: Candidate, terms: WeightedTerms, weights: Weights) -> float:
    """Less than 1 for sections that mention what others explain."""
    page = candidate.page_name
    factor = 1 - weights.listing * (candidate.is_listing or bool(_INDEX.fullmatch(page)))
    if tells_changes(candidate):
        factor *= 1 - weights.changes
    if _GLOSSARY.search(page):
        factor *= 1 - weights.glossary
    if (option := _OPTION.match(candidate.place.heading)) and not any(
        _letters(text) == _letters(option[0]) for text in terms.texts
    ):
        factor *= 1 - weights.option
    if candidate.is_preferred:
        factor *= 1 + weights.language
    return factor


def tells_changes(candidate: Candidate) -> bool:
    """Whether a section or its page tells what changed in a version."""
    names = (candidate.place.heading, candidate.page_name, path_words(candidate.place.url))
    return any(map(_names_changes, names))


@lru_cache(maxsize=8192)
def _names_changes(text: str) -> bool:
    return _CHANGES.search(text) is not None


@lru_cache(maxsize=8192)
def _stems(text: str) -> tuple[str, ...]:
    """The words of a text without the endings of English; only to compare them with others."""
    return tuple(stem(word) for word in _WORDS.findall(text.lower()) if len(word) > 1)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word in lower case without its ending, so that "copy" is "copied" and "run" "running"."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            rest = word[: -len(ending)]
            return rest[:-1] if _DOUBLED.search(rest) and ending in _AFTER_DOUBLED else rest
    return word


@lru_cache(maxsize=8192)
def _own_words(text: str) -> tuple[str, ...]:
    """The words of a heading or title without numbers and arguments, as `_stems`."""
    return tuple(word for word in _stems(_ARGUMENTS.sub("", text)) if not word.isdigit())


def _precision(text: str, terms: WeightedTerms, site: Collection[str] = ()) -> float:
    """The share of a short text that the query covers, from 0 to 1; the site's name is no part."""
    wanted = _stems(" ".join([terms.typed, *terms.parts]))
    words = [word for word in _own_words(text) if word in wanted or word not in site]
    return sum(word in wanted for word in words) / len(words) if words else 0.0


def _overlap(text: str, terms: WeightedTerms) -> float:
    words = _stems(text)
    return terms.share(
        any(word in words for word in _stems(term))
        or (bool(parts) and all(word in words for word in _stems(parts)))
        for term, parts in zip(terms.texts, terms.parts, strict=True)
    )


def _has_phrase(text: str, terms: WeightedTerms) -> bool:
    """Whether the whole query, of at least two words, is in a text."""
    wanted = " ".join(_stems(terms.typed))
    return " " in wanted and f" {wanted} " in f" {' '.join(_stems(text))} "


@lru_cache(maxsize=8192)
def _letters(text: str) -> str:
    """A text without signs and case: `gtk_text_iter` and `Gtk.TextIter` are one name."""
    return "".join(filter(str.isalnum, text.lower()))


def _spellings(names: Iterable[str], site: Collection[str]) -> set[str]:
    """Names without signs, as they are and without the name of the site: `git-add` is "add"."""
    found = set()
    for name in names:
        words = _WORDS.findall(_ARGUMENTS.sub("", name.lower()))
        found |= {_letters(name), "".join(word for word in words if word not in site)}
    return found - {""}


def _exactness(candidate: Candidate, terms: WeightedTerms) -> float:
    """Whether the query is the name of the page, by its title or its file."""
    names = (candidate.page_name, path_words(candidate.place.url))
    site = name_parts(candidate.place.source_id)
    return max(_precision(name, terms, site) * _overlap(name, terms) for name in names)
