"""The paragraph that is being written: texts, and the inline elements open around them."""

from __future__ import annotations

import re

from forager.extract.markdown.escape import balanced, escape_line_start
from forager.extract.text import collapse

# stands for <br> until the paragraph is complete; no white space, so that it survives collapsing
BREAK = "\x01"
MAX_FRAMES = 40  # inline elements inside each other; deeper ones are text


class Frame:
    """An inline element that is open: where its text begins, and what goes around it."""

    __slots__ = ("mark", "start", "url")

    def __init__(self, start: int, mark: str, url: str = "") -> None:
        self.start = start
        self.mark = mark
        self.url = url


class Inline:
    __slots__ = ("frames", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.frames: list[Frame] = []

    def open(self, mark: str, url: str = "") -> bool:
        """Begin an element, unless it is one inside its like or too deep."""
        frames = self.frames
        if frames and (len(frames) >= MAX_FRAMES or any(frame.mark == mark for frame in frames)):
            return False
        frames.append(Frame(len(self.parts), mark, url))
        return True

    def close(self) -> None:
        self._wrap(self.frames.pop())

    @property
    def in_link(self) -> bool:
        return bool(self.frames) and any(frame.url for frame in self.frames)

    def take_line(self) -> str:
        """All of it as one line; the paragraph is empty afterwards."""
        for frame in reversed(self.frames):
            if frame.url:
                self._wrap(frame)
                frame.url = ""
            frame.start = 0
        text = collapse("".join(self.parts).replace(BREAK, " "))
        self.parts.clear()
        return text

    def take_lines(self) -> list[str]:
        """The lines of the paragraph, now empty; elements that are open go on in the next."""
        for frame in reversed(self.frames):
            self._wrap(frame)
            frame.start = 0
            if frame.url:  # a link around several blocks is written at the first
                frame.url = ""
        text = "".join(self.parts)
        self.parts.clear()
        lines = text.split(BREAK) if BREAK in text else (text,)
        return [escape_line_start(line) for line in map(collapse, lines) if line]

    def _wrap(self, frame: Frame) -> None:
        parts, start = self.parts, frame.start
        if start >= len(parts) or (frame.mark == "]" and not frame.url):
            return
        text = "".join(parts[start:])
        stripped = text.strip(_EDGES)
        if not stripped:
            return
        before, _, after = text.partition(stripped)
        parts[start:] = [before, _marked(stripped, frame), after]


_EDGES = " \t\n\r\f\v\u00a0" + BREAK


def _marked(text: str, frame: Frame) -> str:
    if frame.url:
        if ("[" in text or "]" in text) and not balanced(text):
            text = _BRACKET.sub(r"\\\g<0>", text)
        return f"[{text.replace(BREAK, ' ')}]({frame.url})"
    mark = frame.mark
    if BREAK in text:
        lines = (line.strip() for line in text.split(BREAK))
        return BREAK.join(f"{mark}{line}{mark}" if line else "" for line in lines)
    return f"{mark}{text}{mark}"


_BRACKET = re.compile(r"(?<!\\)[\[\]]")
