"""Checks of published pages: the report names the worst of them first."""

from __future__ import annotations

from forager.documents.checks import PROBLEM_CHECKS, CheckedPages
from forager.extract.audit import PageAudit


def audit(number: int, lost: int) -> PageAudit:
    return PageAudit(
        url=f"https://docs.example.org/{number}",
        visible=1000,
        kept=1000,
        headings=9,
        lost_headings=tuple(f"Heading {n}" for n in range(lost)),
        sections=9,
        large_sections=(),
        chosen_by="main",
        fallbacks=0,
    )


async def test_the_worst_pages_are_named() -> None:
    pages = CheckedPages("docs", (0, 0, []))
    for number, lost in enumerate([1, 0, 2, 1, 1, 1, 1, 9, 1]):
        pages.add(audit(number, lost))
    check = next(each for each in PROBLEM_CHECKS if each.name == "lost_headings")
    found = await check(pages)
    assert found.count == 8
    assert [text.split()[0] for text in found.examples][:3] == [
        "https://docs.example.org/7",
        "https://docs.example.org/2",
        "https://docs.example.org/0",
    ]
