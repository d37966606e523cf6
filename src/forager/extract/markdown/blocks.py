"""Blocks of markdown inside open lists and quotes, divided into parts at headings."""

from __future__ import annotations

from dataclasses import dataclass, field

# characters; longer blocks are written without the marks of their container
MAX_INDENTED = 1_000_000
MAX_CONTAINERS = 12  # deeper lists and quotes are written at this depth


@dataclass(slots=True)
class HeadedText:
    """A heading and the text below it; level 0 is the text before the first heading."""

    level: int
    heading: str = ""  # plain text
    markdown_heading: str = ""
    anchor: str | None = None
    blocks: list[str] = field(default_factory=list)
    start: int = 0  # the index of the tag at which it begins
    ends: list[int] = field(default_factory=list)  # for each block, the index of the last tag
    anchors: list[tuple[int, str]] = field(default_factory=list)  # with the number of a block
    # the part whose text continues here, after definitions inside of it have ended
    continues: HeadedText | None = None
    # the heading reads like a label of the page's controls: dropped if nothing is below it
    label: bool = False

    def content(self) -> str:
        return "".join(self.blocks)


@dataclass(slots=True)
class Container:
    """An open list item or quote: the start of its first line, and that of the others."""

    marker: str
    rest: str
    quote: bool = False
    used: bool = False


class Blocks:
    """Collects blocks; each is stored with the line breaks before it."""

    __slots__ = ("_after_item", "_overflow", "_pending", "at", "containers", "part", "parts")

    def __init__(self) -> None:
        self.at = 0  # the index of the current tag
        self.part = HeadedText(0)
        self.parts = [self.part]
        self.containers: list[Container] = []
        self._overflow = 0
        self._after_item = False
        self._pending = False  # the part is not among the parts yet

    def add(self, text: str) -> None:
        if self._pending:
            self.parts.append(self.part)
            self._pending = False
        self.part.ends.append(self.at)
        if not self.containers:
            self.part.blocks.append(f"\n\n{text}" if self.part.blocks else text)
            self._after_item = False
        else:
            self._add_inside(text)

    def _add_inside(self, text: str) -> None:
        first = rest = blank = ""
        begins = False
        for container in self.containers:
            if container.used:
                first += container.rest
                if not begins:
                    blank += container.rest
            else:
                first += container.marker
                begins = begins or not container.quote
                container.used = True
            rest += container.rest
        if "\n" in text and len(text) <= MAX_INDENTED:
            text = text.replace("\n", f"\n{rest}")
        gap = ""
        if self.part.blocks:
            gap = "\n" if begins and self._after_item else f"\n{blank.rstrip()}\n"
        self.part.blocks.append(gap + first + text)
        self._after_item = begins

    def take_label(self, start: int) -> str:
        """Remove and return the last block, if it ended after a tag and nothing follows it."""
        part = self.part
        if not part.ends or part.ends[-1] <= start or self.containers:
            return ""
        part.ends.pop()
        return part.blocks.pop().strip()

    def begin_part(self, part: HeadedText) -> None:
        """Begin a part; its heading ends the lists around it, so that text belongs to no item."""
        for container in self.containers:
            container.marker = container.rest = ""
            container.used = True
        self.part = part
        self.parts.append(part)
        self._after_item = self._pending = False

    def resume(self, part: HeadedText) -> None:
        """Continue an earlier part that definitions have interrupted."""
        if part is not self.part:
            origin = part.continues or part
            self.part = HeadedText(
                0, origin.heading, anchor=origin.anchor, continues=origin, start=self.at
            )
            self._pending = True
            self._after_item = False

    @property
    def level(self) -> int:
        """The level of the heading that the next block belongs to."""
        return (self.part.continues or self.part).level

    def open(self, container: Container) -> None:
        if len(self.containers) < MAX_CONTAINERS:
            self.containers.append(container)
        else:
            self._overflow += 1

    def close(self) -> None:
        if self._overflow:
            self._overflow -= 1
        elif self.containers:
            self.containers.pop()

    def end_list(self) -> None:
        if not self.containers:
            self._after_item = False

    @property
    def in_quote(self) -> bool:
        return any(container.quote for container in self.containers)
