"""Qualified names of what a section defines, by its anchor, its heading and the page it is on.

`asyncio.gather` is an anchor in Sphinx. A method in rustdoc or javadoc has only its own name for
an anchor; the page's title says what it is a method of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from forager.extract.identifiers import MAX_LENGTH

_MAX_READ = 400  # characters of a heading or an anchor
_MAX_NAMES = 16
_NAME = r"[A-Za-z_$][\w$]*+"
_PATH = rf"{_NAME}(?:(?:\.|::){_NAME})*+"
# "std::vec::Vec", "asyncio.Queue.get"; with the role that some generators write before it
_QUALIFIED = re.compile(rf"(?:[a-z_-]{{1,20}}:(?!:))?({_NAME}(?:(?:\.|::){_NAME})++)")
_ROLE = re.compile(
    rf"(?:command|variable|genex|module|prop_\w{{1,9}}|envvar|policy|c)[:.-]({_NAME})"
)
# anchors of rustdoc and of javadoc for members of the type that the page is about
_RUST_MEMBER = re.compile(
    rf"(?:ty)?(?:method|variant|structfield|associatedconstant|associatedtype)\.({_NAME})(?:-\d+)?"
)
_JAVA_MEMBER = re.compile(rf"({_NAME}|<init>|%3Cinit%3E)\([^()]*\)")
_TYPE = re.compile(
    r"(?:(?:Public|Abstract|Final|Sealed) )*(?:Struct|Enum|Trait|Union|Class|Interface|Record"
    r"|Module|Namespace|Primitive Type|Type Alias|Annotation)(?: Class| Interface| Type)?"
    rf" ({_PATH})"
)
_RUST_TITLE = re.compile(rf"({_NAME}) in ({_PATH}) ")
_PACKAGE = re.compile(rf"\bPackage \[?({_PATH})")
_ARGUMENTS = re.compile(r"<[^<>]{0,200}>")
_PARTS = re.compile(r"(\.|::)")


@dataclass(frozen=True, slots=True)
class Container:
    """The type or module that a page is about; empty where it does not say."""

    path: str = ""


def container_of(title: str | None, heading: str, lead: str = "") -> Container:
    """What a page is about, by its title, its first heading and the text before that."""
    if found := _RUST_TITLE.match(title or ""):
        return Container(f"{found[2]}::{found[1]}")
    if not (found := _TYPE.match(heading[:_MAX_READ])):
        return Container()
    package = _PACKAGE.search(lead[:_MAX_READ])
    qualified = package and "." not in found[1] and "::" not in found[1]
    return Container(f"{package[1]}.{found[1]}" if package and qualified else found[1])


def qualified_names(container: Container, heading: str, anchor: str | None) -> list[str]:
    """The names of what a section defines, longest first; none where it defines nothing."""
    found: dict[str, None] = {}
    for path in _paths(container, heading[:_MAX_READ], (anchor or "")[:_MAX_READ]):
        found.update(dict.fromkeys(_suffixes(path)))
    return list(found)[:_MAX_NAMES]


def _paths(container: Container, heading: str, anchor: str) -> list[str]:
    paths = []
    if member := _member(container, heading, anchor):
        paths.append(f"{container.path}{member}")
    elif found := _QUALIFIED.fullmatch(anchor) or _ROLE.fullmatch(anchor):
        paths.append(found[1].removeprefix("c."))
    if "::" in heading and (found := _QUALIFIED.search(_without_arguments(heading))):
        paths.append(found[1])
    return paths


def _member(container: Container, heading: str, anchor: str) -> str | None:
    """The name of a member of the page's type, after the sign that joins it to that."""
    if not container.path:
        return None
    if found := _RUST_MEMBER.fullmatch(anchor):
        return f"::{found[1]}"
    if found := _JAVA_MEMBER.fullmatch(anchor):
        is_constructor = found[1][0] in "<%"
        return f".{container.path.rpartition('.')[2] if is_constructor else found[1]}"
    is_field = anchor == heading and re.fullmatch(_NAME, anchor) is not None
    return f".{anchor}" if is_field else None


def _without_arguments(heading: str) -> str:
    """A C++ or Rust name without what stands in angle brackets."""
    for _ in range(3):
        heading = _ARGUMENTS.sub("", heading)
    return heading


def _suffixes(path: str) -> list[str]:
    """`a.b.c`, `b.c` and `c`."""
    parts = _PARTS.split(path)
    names = ("".join(parts[start:]) for start in range(0, len(parts), 2))
    return [name for name in names if 1 < len(name) <= MAX_LENGTH]
