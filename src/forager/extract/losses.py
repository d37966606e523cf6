"""The losses of one page: what it shows, and neither the document has nor a rule removed.

Words, code blocks, table rows, list items and the title of the page are looked for in the markdown
of the document, and then in the texts that rules removed, as `explain` lists them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser

from forager.extract.composition import tokens_of
from forager.extract.document import Document, ExtractedPage
from forager.extract.explanation import CODE
from forager.extract.generators import generator_of
from forager.extract.markdown.tags import Shape
from forager.extract.markdown.tokens import Tokens, spaced_text
from forager.extract.text import name_set

_WORD = re.compile(r"\w+")
_FENCE = re.compile(r"(?:[-*] |\d+\. |[>\s])*(`{3,})")
_TARGET = re.compile(r"(?<!\\)\]\([a-z][a-z0-9+.-]*+:[^\s()]*+\)")
_MARKS = re.compile(r"[`*\[\]^]+")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_BLOCKS = name_set("ul ol dl p div pre table blockquote")
_MAX_COMPARED = 200  # characters of one element
_MIN_JOINED = 4  # characters of a word that is looked for without blanks
_PART = 12  # characters of a part of it
_INVISIBLE = ["script", "style", "noscript", "svg", "template", "noembed", "noframes"]
KINDS = ("title", "code", "table row", "list item")


@dataclass(frozen=True, slots=True)
class Losses:
    """Numbers of words and elements. `lost` ones were removed by no rule."""

    generator: str = ""
    words: int = 0  # that the page shows
    lost_words: tuple[str, ...] = ()
    removed_words: Mapping[str, int] = field(default_factory=dict)  # rule: words
    elements: Mapping[str, int] = field(default_factory=dict)  # kind: on the page
    lost: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # kind: texts

    @property
    def lost_count(self) -> int:
        return len(self.lost_words) + sum(map(len, self.lost.values()))

    @property
    def summary(self) -> str:
        """The numbers of all that is lost, with an example of each."""
        found = {"word": self.lost_words, **self.lost}
        return "; ".join(
            f"{len(texts)} {kind}{'s' if len(texts) > 1 else ''}, for example {texts[0][:60]!r}"
            for kind, texts in found.items()
            if texts
        )


NO_LOSSES = Losses()


def count_losses(html: str, reading: ExtractedPage) -> Losses:
    """Compare a page with its document, which must be one that explains what was removed."""
    tree = LexborHTMLParser(html)
    if tree.body is not None:
        tree.body.strip_tags(_INVISIBLE, recursive=True)
    tokens = tokens_of(tree)[0]
    document = reading.document
    if tokens is None or document is None:
        return Losses(generator_of(html))
    visible = Counter(_WORD.findall(spaced_text(tokens, 0, len(tokens.tags) - 1)))
    removed: Counter[str] = Counter()
    by_rule: Counter[str] = Counter()
    for block in document.removed:
        words = _WORD.findall(block.text)
        by_rule[_rule(block.reason)] += len(words) * block.count
        removed.update(words * block.count)
    text = _plain(document)
    # emphasis and links may be inside a word, and a star between two of them,
    # and `<br>` may separate the lines of a cell, or be a word of the page
    lines = text.replace("<br>", " ")
    joined, separated = (
        Counter(_WORD.findall(_MARKS.sub(mark, read))) for mark, read in (("", text), (" ", lines))
    )
    lost = visible - (joined | separated) - removed
    elements: Counter[str] = Counter()
    missing: dict[str, list[str]] = {kind: [] for kind in KINDS}
    have = _compact(text) + (_compact(lines) if lines != text else "")
    removed_texts = [_compact(block.text) for block in document.removed]
    gone = "".join(removed_texts)
    cut_from_code = [
        list(map(_compact, block.text.split()))
        for block in document.removed
        if block.element == CODE
    ]
    for kind, pieces in _elements(tokens, reading.facts.title or ""):
        elements[kind] += 1
        where = _headings(document) if kind == "title" else have
        if not all(
            piece in gone
            or _is_in(piece, where, gone)
            or _left(piece, removed_texts) in where
            or any(_uncut(piece, parts) in where for parts in cut_from_code)
            for piece in pieces
        ):
            missing[kind].append(" ".join(pieces)[:_MAX_COMPARED])
    return Losses(
        generator=generator_of(html),
        words=visible.total(),
        lost_words=tuple(
            sorted(word for word in lost.elements() if not _is_joined(word, have, gone))
        ),
        removed_words=dict(by_rule),
        elements=dict(elements),
        lost={kind: tuple(found) for kind, found in missing.items() if found},
    )


def _is_in(piece: str, text: str, gone: str) -> bool:
    """Whether a text has a piece, or most parts of it that no rule removed, such as a label."""
    if piece in text:
        return True
    parts = [piece[at : at + _PART] for at in range(0, len(piece), _PART)]
    found = sum(part in text or part in gone for part in parts)
    return len(parts) > 2 and 2 * found > len(parts)


def _left(piece: str, removed: Iterable[str]) -> str:
    """A piece without the texts in it that rules removed."""
    for text in removed:
        if text in piece:
            piece = piece.replace(text, "", 1)
    return piece


def _uncut(piece: str, parts: Iterable[str]) -> str:
    """A piece without parts that were cut from it in their order, such as the numbers of lines."""
    at = 0
    for part in parts:
        if (found := piece.find(part, at)) < 0:
            break
        piece = piece[:found] + piece[found + len(part) :]
        at = found
    return piece


def _is_joined(word: str, have: str, gone: str) -> bool:
    """Whether a text has a word, only with marks or blanks inside: "`Char`s" is "Chars"."""
    word = word.casefold()
    return len(word) >= _MIN_JOINED and (word in have or word in gone)


def _rule(reason: str) -> str:
    """A reason without numbers: "on 12 of 64 pages of its source" is one rule."""
    return re.sub(r"\d+", "N", reason)


def _plain(document: Document) -> str:
    """The text of a document without marks and link targets; code stays as it is."""
    lines = [document.title]
    fence = ""
    for line in document.markdown.split("\n"):
        opened = _FENCE.match(line)
        if fence:
            fence = "" if line.lstrip("> ") == fence else fence
        elif opened:
            fence = opened[1]
        else:
            line = _ESCAPED.sub(r"\1", _TARGET.sub("]", line))
        lines.append(line)
    return "\n".join(lines)


def _compact(text: str) -> str:
    return "".join(_WORD.findall(text)).casefold()


def _headings(document: Document) -> str:
    return _compact("\n".join(section.heading for section in document.sections))


def _elements(tokens: Tokens, title: str) -> Iterator[tuple[str, list[str]]]:
    """The elements of a page by kind, as pieces without blanks that must all be found."""
    title = _compact(title)
    for index in tokens.headings:
        text = _compact(spaced_text(tokens, index, tokens.closing[index]))
        if len(text) > 2 and title.startswith(text):
            yield "title", [text]
            break
    for index, tag in enumerate(tokens.tags):
        if tag.shape is Shape.END:
            continue
        if tag.name == "pre":
            pieces = spaced_text(tokens, index, tokens.closing[index])
            if text := _compact(pieces)[:_MAX_COMPARED]:
                yield "code", [text]
        elif tag.name == "tr" or tag.name == "li":
            pieces_of = _cells(tokens, index) if tag.name == "tr" else _own(tokens, index)
            if found := [piece for piece in pieces_of if piece]:
                yield ("table row" if tag.name == "tr" else "list item"), found


def _cells(tokens: Tokens, row: int) -> Iterator[str]:
    end = tokens.closing[row]
    for index in range(row + 1, end):
        if tokens.tags[index].name in ("td", "th"):
            yield from _own(tokens, index)


def _own(tokens: Tokens, index: int) -> Iterator[str]:
    """The text of an element before the first block in it."""
    end = tokens.closing[index]
    inside = range(index + 1, end)
    stop = next((at for at in inside if tokens.tags[at].name in _BLOCKS), end)
    yield _compact(spaced_text(tokens, index, stop))[:_MAX_COMPARED]
