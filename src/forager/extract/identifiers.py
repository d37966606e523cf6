"""Identifiers of code as typed, and the qualified names of what a section defines.

`asyncio.gather` is found as one word. It is an anchor in Sphinx; the anchor of a method in rustdoc
or javadoc is the bare name of the method, and the page's title names its type.
"""

from __future__ import annotations

import re
from itertools import chain

MAX_IDENTIFIERS = 1_000  # of one section
MAX_LENGTH = 100
_MAX_TEXT = 256 * 1024

# Only words that a plain word search would split. Loops over characters are possessive; loops over
# groups are not: before Python 3.11.5, those skip what a failed last round has read.
_IDENTIFIER = re.compile(
    r"""
      (?<![\w-]) --? [A-Za-z][\w]*+ (?:-[\w]++)*            # --no-verify, -Wall
    | @?[A-Za-z_$][\w$]*+ (?: (?: \.|::|->|\# ) ~?[A-Za-z_$][\w$]*+ )+
                                                             # asyncio.gather, std::vector, a->b
    | \$< [A-Za-z_][\w:.,-]*+ >                              # $<TARGET_FILE:tgt>
    | @ [A-Za-z_][\w]*+                                      # @dataclass
    | \$ [A-Za-z_][\w]*+                                     # $HOME
    | [A-Za-z][A-Za-z0-9]*+ (?:-[A-Za-z0-9]++)+              # X-Header-Name, multi-part words
    | [A-Za-z0-9]*_[\w]*+                                    # snake_case, __init__
    | [a-z]++[A-Z][\w]*+ | [A-Z][a-z0-9]++[A-Z][\w]*+        # camelCase, PascalCase
    | [A-Za-z][A-Za-z0-9]*+(?=\(\))                          # call()
    """,
    re.VERBOSE,
)
# in every identifier, and in few other words
_SIGN = re.compile(r"_|[.#:>]~?[A-Za-z_$]|-[A-Za-z0-9]|[@$][A-Za-z_]|\$<|[a-z0-9][A-Z]|\(\)")
# Words that may be identifiers: runs of words without any such sign are skipped in one step.
# Nothing here backtracks, so that the cost is linear in the length of the text.
_WORDS = re.compile(
    r"""(?:["'“`*(\[|={}+/—→•]*+[A-Z]*+[a-z0-9]*+["'”`*)\].,;:|={}/]*+\s++)*(\S*+)\s*+"""
)
# a target has at most one level of parentheses, as in CommonMark: a row of "](" without an end
# would otherwise be read again from each of them
_LINK_TARGET = re.compile(r"\]\((?:[^\s()]++|\([^\s()]*+\))*\)|https?://[^\s)>\]]+")
_PARTS = re.compile(r"\.|::|->|#")
_MAX_WORD = 200  # characters of a cached word
_MAX_KNOWN = 131_072
_MAX_READ = 1_000  # characters of a word that are read: longer words are not text


def identifier_lexemes(markdown: str) -> list[str]:
    """Identifiers in lower case, each once, in order; a dotted one is followed by its last part."""
    text = markdown[:_MAX_TEXT]
    if "](" in text or "://" in text:
        text = _LINK_TARGET.sub("]", text)
    if "\\" in text:
        text = text.replace("\\_", "_").replace("\\<", "<")
    words = dict.fromkeys(_WORDS.findall(text))
    found = dict.fromkeys(chain.from_iterable(map(_known.__getitem__, words)))
    return list(found)[:MAX_IDENTIFIERS]


class _Known(dict[str, tuple[str, ...]]):
    """Cache of the lexemes of words: the pages of a site repeat their words."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        lexemes = _lexemes_of(word[:_MAX_READ])
        if len(word) <= _MAX_WORD:
            if len(self) >= _MAX_KNOWN:
                self.clear()
            self[word] = lexemes
        return lexemes


_known = _Known()


def _lexemes_of(word: str) -> tuple[str, ...]:
    """The lexemes of all identifiers in a text without blanks."""
    if _SIGN.search(word) is None:
        return ()
    found: list[str] = []
    for identifier in _IDENTIFIER.findall(word):
        _add(found, identifier.lower().rstrip("-."))
    return tuple(found)


def _add(found: list[str], identifier: str) -> None:
    if not 2 <= len(identifier) <= MAX_LENGTH or not _has_letter(identifier):
        return
    if identifier[:2] == "$<":
        found += [identifier, identifier[2:-1].partition(":")[0]]
        return
    parts = _PARTS.split(identifier)
    if len(parts) == 1:
        found.append(identifier)
    elif max(map(len, parts)) > 1:  # not e.g, i.e, U.S
        found.append(identifier)
        if len(parts[-1]) > 1:
            found.append(parts[-1])


def _has_letter(identifier: str) -> bool:
    return identifier.islower() or any(map(str.isalpha, identifier))


_MAX_HEADING_READ = 400  # characters of a heading or an anchor
_MAX_NAMES = 16
_NAME = r"[A-Za-z_$][\w$]*+"
_PATH = rf"{_NAME}(?:(?:\.|::){_NAME})*"
# "std::vec::Vec", "asyncio.Queue.get"; with the role that some generators write before it
_QUALIFIED = re.compile(rf"(?:[a-z_-]{{1,20}}:(?!:))?({_NAME}(?:(?:\.|::){_NAME})+)")
_ROLE = re.compile(
    rf"(?:command|variable|genex|module|prop_\w{{1,9}}|envvar|policy|c)[:.-]({_NAME})"
)
# anchors of rustdoc and of javadoc for members of the type that the page is about
_RUST_MEMBER = re.compile(
    rf"(?:ty)?(?:method|variant|structfield|associatedconstant|associatedtype)\.({_NAME})(?:-\d+)?"
)
_JAVA_MEMBER = re.compile(rf"({_NAME}|<init>|%3Cinit%3E)\([^()]*\)")
# anchors of Crystal, YARD and RDoc, of odoc, and of Haddock
_OTHER_MEMBER = re.compile(
    rf"(?:method-[ci]-|[vt]:|(?:val|type|exception|module)-)({_NAME}[?!]?)"
    rf"|({_NAME}[?!]?)(?:[(:].*)?-(?:instance|class)[-_]method"
)
_INSTANCE_METHOD = re.compile(r"^method-i-|-instance[-_]method$")
_TYPE = re.compile(
    r"(?:(?:Public|Abstract|Final|Sealed|abstract) )*(?:(?:Struct|Enum|Trait|Union|Class|Interface"
    r"|Record|Module|Namespace|Primitive Type|Type Alias|Annotation|Exception):?"
    r"(?: Class| Interface| Type)?|(?:class|module|struct|enum|annotation|interface)(?= [A-Z]))"
    rf" ({_PATH})"
)
# the name that a signature declares: before its arguments
_DECLARED = re.compile(rf"({_NAME}[?!]?)\(")
_RUST_TITLE = re.compile(rf"({_NAME}) in ({_PATH}) ")
_PACKAGE = re.compile(rf"\bPackage \[?({_PATH})")
_ARGUMENTS = re.compile(r"<[^<>]{0,200}>")
_SEPARATORS = re.compile(r"(\.|::|#)")


def container_of(title: str | None, heading: str, lead: str = "") -> str:
    """The type or module that a page documents; empty where the page does not name one.

    It is in the page's title or its first heading; the text before that names its package.
    """
    if found := _RUST_TITLE.match(title or ""):
        return f"{found[2]}::{found[1]}"
    if not (found := _TYPE.match(heading[:_MAX_HEADING_READ])):
        return ""
    package = _PACKAGE.search(lead[:_MAX_HEADING_READ])
    qualified = package and "." not in found[1] and "::" not in found[1]
    return f"{package[1]}.{found[1]}" if package and qualified else found[1]


def qualified_names(container: str, heading: str, anchor: str | None) -> list[str]:
    """The names that a section defines, longest first; none where it defines nothing."""
    found: dict[str, None] = {}
    for path in _paths(container, heading[:_MAX_HEADING_READ], (anchor or "")[:_MAX_HEADING_READ]):
        found.update(dict.fromkeys(_suffixes(path)))
    return list(found)[:_MAX_NAMES]


def _paths(container: str, heading: str, anchor: str) -> list[str]:
    paths = []
    if member := _member(container, heading, anchor):
        paths.append(f"{container}{member}")
        if _INSTANCE_METHOD.search(anchor):  # as in Array#each
            paths.append(f"{container}#{member[1:]}")
    elif found := _QUALIFIED.fullmatch(anchor) or _ROLE.fullmatch(anchor):
        paths.append(found[1].removeprefix("c."))
    elif anchor and (found := _DECLARED.search(heading)) and anchor.startswith(found[1]):
        paths.append(f"{container}.{found[1]}" if container else found[1])
    if "::" in heading and (found := _QUALIFIED.search(_without_arguments(heading))):
        paths.append(found[1])
    return paths


def _member(container: str, heading: str, anchor: str) -> str | None:
    """The name of a member of the page's type, with the separator before it."""
    if not container:
        return None
    if found := _RUST_MEMBER.fullmatch(anchor):
        return f"::{found[1]}"
    if found := _JAVA_MEMBER.fullmatch(anchor):
        is_constructor = found[1][0] in "<%"
        return f".{container.rpartition('.')[2] if is_constructor else found[1]}"
    if found := _OTHER_MEMBER.fullmatch(anchor):
        return f".{found[1] or found[2]}"
    is_field = anchor == heading and re.fullmatch(_NAME, anchor) is not None
    return f".{anchor}" if is_field else None


def _without_arguments(heading: str) -> str:
    """A C++ or Rust name without the arguments in angle brackets."""
    for _ in range(3):
        heading = _ARGUMENTS.sub("", heading)
    return heading


def _suffixes(path: str) -> list[str]:
    """`a.b.c`, `b.c` and `c`."""
    parts = _SEPARATORS.split(path)
    names = ("".join(parts[start:]) for start in range(0, len(parts), 2))
    return [name for name in names if 1 < len(name) <= MAX_LENGTH]
