"""Sections are compared by their anchor, or else by their heading."""

from __future__ import annotations

from forager.db.ids import new_id
from forager.documents.page import SectionRow
from forager.documents.section_diff import section_changes


def section(heading: str, content: str, anchor: str | None = None) -> SectionRow:
    return SectionRow(new_id(), None, heading, 2, anchor, content, 0)


def test_a_section_keeps_its_anchor_when_its_heading_changes() -> None:
    old, new = section("Set up", "text", "install"), section("Install", "text", "install")
    [change] = section_changes([old], [new])
    assert (change.kind, change.heading) == ("changed", "Install")
    assert "-## Set up\n+## Install" in change.diff


def test_sections_added_and_removed() -> None:
    changes = section_changes(
        [section("A", "a"), section("B", "b")], [section("B", "b"), section("C", "c")]
    )
    assert [(c.kind, c.heading) for c in changes] == [("added", "C"), ("removed", "A")]


def test_headings_that_repeat_are_told_apart_by_their_order() -> None:
    old = [section("Example", "1"), section("Example", "2")]
    new = [section("Example", "1"), section("Example", "3")]
    [change] = section_changes(old, new)
    assert "-2\n+3" in change.diff


def test_text_that_is_too_long_is_not_compared() -> None:
    lines = "\n".join(["x"] * 5000)
    [change] = section_changes([section("A", lines)], [section("A", lines + "\ny")])
    assert change.diff.startswith("too long to compare")
