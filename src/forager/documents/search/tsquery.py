"""A user's query: parsed, and translated to a tsquery for matching and highlighting."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from itertools import combinations, islice
from unicodedata import normalize

from forager.db.database import Connection
from forager.db.text_search import quoted
from forager.documents.names import DEFINES, bigrams, canonical_name
from forager.documents.store import words
from forager.extract.identifiers import identifier_lexemes
from forager.extract.text import storable

_LEXEME = re.compile(r"'((?:[^'\\]|''|\\.)*)'")
# at most this many words of a query are optional; further ones must match
_MAX_OPTIONAL = 7
_MIN_STEM = 4
# a name with its container, or with the number of its arguments
_QUALIFIED = re.compile(
    r"[A-Za-z_$][^\s:#>./]*(?:(?:::|->|[:.#])[^\s:#>./]+)*(?:/\d{1,2})?(?:\(\))?"
)
_ARITY = re.compile(r"/\d{1,2}$")


class MatchMode(StrEnum):
    """How the terms of a query are matched."""

    TYPED = "typed"
    # identifiers by the words that they are made of
    WORDS = "words"
    # names and the last word as beginnings
    PREFIX = "prefix"
    # words without their endings
    STEM = "stem"


@dataclass(frozen=True, slots=True)
class TsTerm:
    """A term that must match, as it was typed and as a query of PostgreSQL."""

    text: str
    query: str
    # for sections that define what it names
    defined: str
    is_name: bool
    # the words of a name in camel case
    parts: str = ""

    @property
    def lexemes(self) -> list[str]:
        return lexemes_of(self.query)


@dataclass(frozen=True, slots=True)
class TsQuery:
    """A query under one text search configuration; empty if nothing in it can be looked for."""

    match: str
    # the query for highlights, without excluded terms
    positive: str
    terms: tuple[TsTerm, ...] = ()
    # excluded terms, if there are no alternatives
    unwanted: tuple[str, ...] = ()
    is_simple: bool = True
    # all words as they were typed
    typed: str = ""

    @property
    def lexemes(self) -> list[str]:
        return lexemes_of(self.positive)

    def relaxed(self, rarity: Sequence[float], share: float) -> str:
        """The query for sections that have words with this share of its weight."""
        order = sorted(range(len(self.terms)), key=lambda n: -rarity[n])[:_MAX_OPTIONAL]
        # of two words, the rarer one
        needed = min(share * sum(rarity[n] for n in order), sum(rarity[n] for n in order[:-1]))
        chosen: list[tuple[int, ...]] = []
        for size in range(1, len(order) + 1):
            for subset in combinations(order, size):
                weight = sum(rarity[n] for n in subset)
                if weight >= needed and not any(set(few) <= set(subset) for few in chosen):
                    chosen.append(subset)
        ways = [" & ".join(self.terms[n].query for n in subset) for subset in chosen]
        return " & ".join([f"({_either(ways)})", *self.unwanted]) if ways else ""


EMPTY = TsQuery("", "")


def any_of(lexemes: Iterable[str]) -> str:
    """A query for rows that have one of some lexemes."""
    return f"({' | '.join(map(quoted, lexemes))})"


def build(
    query: Query,
    words: Sequence[str],
    reading: MatchMode = MatchMode.TYPED,
    without: frozenset[str] = frozenset(),
) -> TsQuery:
    """Put a query together; `words` are the texts of its terms as PostgreSQL reads them.

    Terms in `without` are left out: in lower case, they name the source that is searched.
    """
    rest = iter(words)
    alternatives: list[str] = []
    found: dict[str, TsTerm] = {}
    unwanted: list[str] = []
    for terms in query.alternatives:
        last = terms[-1]
        read = [
            (term, _term(term, _read_words(term, rest), reading, is_last=term is last))
            for term in terms
        ]
        wanted = [
            TsTerm(
                term.text,
                part,
                _defined(term, reading),
                term.kind is TermKind.IDENTIFIER,
                term.parts,
            )
            for term, part in read
            if part and not term.negated and term.text.lower() not in without
        ]
        excluded = [f"!({part})" for term, part in read if part and term.negated]
        # "everything but" would be nearly everything
        if wanted:
            alternatives.append(" & ".join([*(term.query for term in wanted), *excluded]))
            found.update((term.query, term) for term in wanted)
            unwanted += excluded
    return TsQuery(
        match=_either(alternatives),
        positive=_either(found),
        terms=tuple(found.values()),
        unwanted=tuple(unwanted),
        is_simple=len(query.alternatives) == 1,
        typed=" ".join(
            term.text
            for term in query.terms
            if not term.negated and term.text.lower() not in without
        ),
    )


def _read_words(term: Term, rest: Iterator[str]) -> list[str]:
    """The texts of a term as PostgreSQL reads them.

    The words of a name count only if none is a stop word: of `toString`, "string" would be left.
    """
    text, *parts = islice(rest, len(term.texts))
    between = term.parts.count(" ")
    return [text, *(words for words in parts if words.count(" <-> ") == between)]


def _term(term: Term, words: Sequence[str], reading: MatchMode, *, is_last: bool) -> str:
    if term.kind is TermKind.IDENTIFIER:
        return _identifier_query(term, words, reading)
    pairs = bigrams(term.text)
    ways = [word for word in words if word]
    if pairs:
        ways.append(" & ".join(map(quoted, dict.fromkeys(pairs))))
    ways += _definitions(term)
    if term.kind is TermKind.WORDS and (
        beginning := _beginning(term.text, reading, is_last=is_last)
    ):
        ways.append(f"{quoted(beginning)}:*")
    return f"({_either(ways)})" if len(ways) > 1 else f"({ways[0]})" if ways else ""


def _defined(term: Term, reading: MatchMode) -> str:
    """The query for sections that define what a term names."""
    name = canonical_name(term.lexeme or term.text)
    is_prefix = reading is MatchMode.PREFIX
    return f"{quoted(DEFINES + name)}{':*' if is_prefix else ''}" if " " not in name else ""


def _definitions(term: Term) -> list[str]:
    """Further ways to match a qualified name: `ets:new/2` is defined as `new` on the page `ets`."""
    name = canonical_name(term.text)
    if not _QUALIFIED.fullmatch(term.text) or not set("./") & set(name):
        return []
    names = dict.fromkeys((name, _ARITY.sub("", name)))
    return [quoted(DEFINES + each) for each in names if len(each) > 1]


def _identifier_query(term: Term, words: Sequence[str], reading: MatchMode) -> str:
    name = quoted(term.lexeme)
    if reading in (MatchMode.PREFIX, MatchMode.STEM):
        return f"{name}:*"
    # pg_stat in pg_stat_activity is two words in a row; GitHub is a word, and written as one too
    is_read = term.lexeme.isalnum() or reading is MatchMode.WORDS
    also = [f"({word})" for word in words if is_read and word not in ("", name)]
    also += _definitions(term)
    return f"({' | '.join([name, *also])})" if also else name


def _beginning(word: str, reading: MatchMode, *, is_last: bool) -> str:
    if reading is MatchMode.PREFIX and is_last:
        return word.lower()
    if reading is MatchMode.STEM and len(word) > _MIN_STEM:
        return word.lower()[: max(_MIN_STEM, len(word) - 3)]
    return ""


def _either(parts: Iterable[str]) -> str:
    return " | ".join(f"({part})" for part in dict.fromkeys(parts))


def lexemes_of(query: str) -> list[str]:
    return [re.sub(r"''|\\(.)", lambda m: m[1] or "'", x) for x in _LEXEME.findall(query)]


# longer queries are cut, with a note
MAX_CHARACTERS = 1_000
MAX_TERMS = 32

# a phrase in any of the quotes that keyboards and word processors make, or a run of characters
_PIECE = re.compile(r'(-?)["“”„«»]([^"“”„«»]*)["“”„«»]?|(\S+)')
_QUOTES = '"“”„«»'
_BRACKETS = "()[]{}<>,;!?"
# before a capital that begins a word: in "XMLHttpRequest", before H and R
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class TermKind(Enum):
    """How a term of a query is searched."""

    WORDS = "words"
    PHRASE = "phrase"
    # to be found as typed
    IDENTIFIER = "identifier"


@dataclass(frozen=True, slots=True)
class Term:
    """One term to search for, or to exclude."""

    kind: TermKind
    text: str
    negated: bool = False
    # the lexeme of an identifier in sections
    lexeme: str = ""

    @property
    def parts(self) -> str:
        """The words of a name in camel case: "Remote Ip Valve" of "RemoteIpValve"."""
        if self.kind is TermKind.PHRASE or not self.text.isalnum():
            return ""
        parts = _CAPITAL.sub(" ", self.text)
        return parts if parts != self.text else ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that PostgreSQL reads."""
        return (self.text, self.parts) if self.parts else (self.text,)


@dataclass(frozen=True, slots=True)
class Query:
    """Alternatives, each a list of terms that must all hold."""

    alternatives: tuple[tuple[Term, ...], ...]
    shortened: bool = False

    @property
    def terms(self) -> list[Term]:
        return [term for alternative in self.alternatives for term in alternative]


def parse_query(text: str) -> Query:
    """Read a query as web searches do. Nothing a person can type is an error."""
    text = normalize("NFC", storable(text)).strip()
    pieces = list(_pieces(text[:MAX_CHARACTERS]))
    shortened = len(text) > MAX_CHARACTERS or len(pieces) > MAX_TERMS
    alternatives: list[list[Term]] = [[]]
    for piece in pieces[:MAX_TERMS]:
        if piece is None:
            alternatives.append([])
        else:
            alternatives[-1].append(piece)
    return Query(tuple(tuple(terms) for terms in alternatives if terms), shortened)


def _pieces(text: str) -> Iterator[Term | None]:
    """The terms in their order; None for an operator `OR`.

    In lower case, it is one between single terms: "insert or update a row" is a sentence.
    """
    found = _PIECE.findall(text)
    is_operator = all(word.lower() == "or" for _, _, word in found[1::2])
    # a dash excludes a word only after another one: a query may begin with options
    are_options = True
    for minus, phrase, word in found:
        if word.lower() == "or":
            if word == "OR" or is_operator:
                yield None
        elif word:
            are_options = are_options and word.startswith("-")
            # a quote may begin in the middle of a run: what comes before it is a separate word
            yield from _split_at_quote(word, is_option=are_options)
        elif phrase.strip():
            yield _phrase(phrase.strip(), negated=bool(minus))


def _split_at_quote(word: str, *, is_option: bool) -> Iterator[Term]:
    bare = word.strip(_QUOTES)
    if any(quote in bare for quote in _QUOTES):
        for part in re.split(f"[{_QUOTES}]", bare):
            if part:
                yield _word(part, is_option=is_option)
    elif bare:
        yield _word(bare, is_option=is_option)


def _phrase(text: str, *, negated: bool) -> Term:
    return _identifier(text, negated=negated) or Term(TermKind.PHRASE, text, negated)


def _word(word: str, *, is_option: bool) -> Term:
    # `--no-verify` begins with what otherwise means "without"
    is_option |= word.startswith("--")
    if is_option and word.startswith("-") and (term := _identifier(word)):
        return term
    bare = word.lstrip("-") or word
    negated = bare != word and not is_option
    return _identifier(bare, negated=negated) or Term(TermKind.WORDS, bare, negated)


def _identifier(word: str, *, negated: bool = False) -> Term | None:
    """The word as an identifier, if the whole of it is one; the brackets of a call are none."""
    name = word if word.startswith("$<") else word.strip(_BRACKETS)
    lexemes = identifier_lexemes(name)
    if not lexemes or lexemes[0] != name.lower():
        return None
    return Term(TermKind.IDENTIFIER, name, negated, lexemes[0])


_MIN_LENGTH = 4


async def suggest(
    connection: Connection, query: Query, text: str, generations: Sequence[int]
) -> str | None:
    """The text with words replaced that no section has; None if there is nothing to replace."""
    found = text
    for term in query.terms:
        word = term.text.lower()
        if term.negated or term.kind is TermKind.PHRASE or len(word) < _MIN_LENGTH:
            continue
        similar = await words.select_similar(connection, generations, word)
        if word not in similar and (meant := closest(word, similar)):
            found = found.replace(term.text, meant)
    return found if found != text else None


def closest(word: str, similar: Mapping[str, int]) -> str | None:
    """The most common of the words that are fewest edits away: one, or two in a longer word."""
    allowed = 1 if len(word) <= 5 else 2
    near = [(distance(word, each), -count, each) for each, count in similar.items()]
    best = min(near, default=None)
    return best[2] if best is not None and best[0] <= allowed else None


def distance(one: str, other: str) -> int:
    """Letters to insert, delete, replace or swap with their neighbor."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
