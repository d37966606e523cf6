"""Audit the extraction of whole sites: folders of HTML pages, such as Debian's -doc packages.

These pages are not annotated, so their main content is unknown. Errors can still be counted: empty
pages, headings without a section, anchors without a target, definitions without a section.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

from selectolax.lexbor import LexborHTMLParser

from benchmarks.report import Report
from forager.extract.audit import audit_page
from forager.extract.document import Document, extract_reading

MAX_PAGES = 300  # of one site, chosen at random but always the same
_SIGNS = "#¶§🔗"


@dataclass(slots=True)
class SiteFacts:
    """Sums over the pages of one site."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, path: Path, url: str) -> None:
        body = path.read_bytes()
        start = process_time()
        document = extract_reading(body, url, "text/html").document
        self.seconds += process_time() - start
        audit = audit_page(body, url, "text/html")
        self.counts += Counter(
            pages=1,
            empty=audit.is_empty,
            gutted=audit.is_gutted,
            headings=audit.headings,
            lost=len(audit.lost_headings),
            large=len(audit.large_sections),
            fallbacks=audit.fallbacks > 0,
            sections=audit.sections,
            words=audit.losses.words,
            lost_words=len(audit.losses.lost_words),
            lost_elements=sum(map(len, audit.losses.lost.values())),
        )
        if document is not None:
            self.counts += _anchors(body, document)


def _anchors(body: bytes, document: Document) -> Counter[str]:
    tree = LexborHTMLParser(body.decode("utf-8", "replace"))
    ids = {node.attributes.get("id") for node in tree.css("[id]")}
    ids |= {node.attributes.get("name") for node in tree.css("a[name]")}
    anchors = {section.anchor for section in document.sections}
    terms = [node.attributes.get("id") for node in tree.css("dt[id]")]
    return Counter(
        signs=sum(section.heading[-1:] in _SIGNS for section in document.sections),
        astray=sum(anchor is not None and anchor not in ids for anchor in anchors),
        terms=len(terms),
        defined=sum(term in anchors for term in terms),
    )


def audit_site(folder: Path) -> SiteFacts:
    """The facts of up to MAX_PAGES pages below a folder."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in (".html", ".htm", ".xhtml") and path.is_file() and not path.is_symlink()
    )
    random.Random(7).shuffle(files)
    site = SiteFacts(folder.name)
    for path in files[:MAX_PAGES]:
        site.add(path, f"https://docs.example.org/{path.relative_to(folder)}")
    return site


def site_table(report: Report, sites: Iterable[SiteFacts]) -> None:
    """One row per site."""
    names = (
        "pages", "empty", "gutted", "headings", "lost", "sections", "large", "signs", "astray",
        "terms", "defined", "fallbacks", "words", "lost_words", "lost_elements",
    )  # fmt: skip
    head = [
        "site", "pages", "empty", "under 20 % kept", "headings", "lost", "sections", "over 20 KB",
        "signs in headings", "broken anchors", "dt with id", "as sections", "fallbacks",
        "words", "lost words", "lost titles, code, rows, items", "ms per page",
    ]  # fmt: skip
    rows = [
        [
            site.name,
            *(str(site.counts[name]) for name in names),
            f"{1000 * site.seconds / max(1, site.counts['pages']):.1f}",
        ]
        for site in sites
    ]
    report.table(head, rows)
