"""Answers as compact markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forager.crawl.explain.explanation import Explanation
from forager.crawl.reports.report import CrawlReport
from forager.documents.diff import ChangedPage, Diff
from forager.documents.generation import Source
from forager.documents.page import SectionRow
from forager.documents.publication import publish_hint
from forager.documents.reader import ReadPage
from forager.mcp.text import fenced_lines, moment, one_line
from forager.products.price_history import PriceEntry
from forager.products.product import ListedProduct

MAX_CONTENTS = 200


def citation(page: ReadPage) -> list[str]:
    """Where a text comes from; what an answer that uses it cites."""
    document = page.document
    lines = [
        f"URL: {document.url}",
        f"Source: {document.source_id}, generation {document.generation_number},"
        f" fetched {moment(document.fetched_at)}",
    ]
    if page.duplicate:
        lines.append(f"{page.duplicate} is a duplicate of this page.")
    if document.carried_since:
        lines.append(
            f"Out of date: fetching fails since {moment(document.carried_since)}"
            f" ({document.carried_reason}); this is the last good version."
        )
    return lines


def contents(sections: Sequence[SectionRow]) -> Iterator[str]:
    """The headings of a page with the names by which `read_section` finds them."""
    for section in sections[:MAX_CONTENTS]:
        if section.heading:
            anchor = f" (#{section.anchor})" if section.anchor else f" (section_id {section.id})"
            yield f"{'  ' * max(0, section.level - 1)}- {one_line(section.heading)}{anchor}"
    if len(sections) > MAX_CONTENTS:
        yield f"({len(sections) - MAX_CONTENTS} more sections)"


def source_line(source: Source, about: str = "") -> str:
    parts = [" ".join(filter(None, (f"- {source.id}:", one_line(about), source.base_url)))]
    if source.published_number is None:
        parts.append("nothing published yet")
    else:
        parts.append(
            f"{source.pages} pages, generation {source.published_number}"
            f" of {moment(source.published_at)}"
        )
    if source.held_back_message is not None:
        parts.append(f"{one_line(source.held_back_message)} ({publish_hint(source.id)})")
    if source.next_refresh_at is not None:
        parts.append(f"next refresh {moment(source.next_refresh_at)}")
    if source.active_job is not None:
        parts.append(f"{source.activity}: job {source.active_job}")
    return ", ".join(parts)


def diff_title(diff: Diff) -> str:
    counts = [
        f"{len(pages)} {kind}"
        for kind, pages in (
            ("added", diff.added),
            ("changed", diff.changed),
            ("removed", diff.removed),
            ("renamed", diff.renamed),
        )
    ]
    more = " There are more changes than these." if diff.truncated else ""
    compared = f"{diff.source_id}, generation {diff.old} to {diff.new}"
    if diff.against:
        compared = f"{diff.against} (generation {diff.old}) to {diff.source_id} ({diff.new})"
    return f"{compared}: {', '.join(counts)}.{more}"


def diff_text(diff: Diff) -> str:
    """All changes; sections of changed pages as unified diffs."""
    parts = [f"changed {part}" for page in diff.changed for part in _changed(page)]
    parts += [f"added {page.url} - {one_line(page.title or '')}" for page in diff.added]
    parts += [f"removed {page.url} - {one_line(page.title or '')}" for page in diff.removed]
    parts += [f"renamed {page.old_url} to {page.new_url}" for page in diff.renamed]
    parts += [f"not fetched, may have changed: {page.url}" for page in diff.carried_over]
    return "\n".join(parts) or "(no differences)"


def _changed(page: ChangedPage) -> Iterator[str]:
    before = f"{page.old_url} to " if page.old_url else ""
    yield f"{before}{page.url} - {one_line(page.title or '')}"
    for section in page.sections:
        url = f"{page.url}#{section.anchor}" if section.anchor else page.url
        yield f"section ({section.kind}) {one_line(section.heading)}: {url}\n{section.diff}"


def job_text(report: CrawlReport) -> str:
    """A crawl's state, its ledger, and what it published."""
    job = report.job
    ledger = ", ".join(f"{name} {count}" for name, count in _counts(report))
    lines = [f"Job {job.id} of {job.source_id}: {job.shown_status}", f"URLs: {ledger}"]
    quoted = []
    if report.wait is not None:
        quoted.append(f"Waiting: {one_line(report.wait.message)}")
    if report.seconds_left is not None:
        lines.append(f"About {round(report.seconds_left)} s left.")
    if job.error_message or job.stop_reason:
        quoted.append(f"Stopped: {one_line(job.error_message or job.stop_reason or '')}")
    if (built := report.generation) is not None:
        lines.append(
            f"Generation {built.number} ({built.state.label}): {built.pages} pages,"
            f" {built.added} added, {built.changed} changed, {built.removed} removed"
        )
        if built.note:
            quoted.append(f"Note: {one_line(built.note)}")
    return "\n".join([*lines, *fenced_lines(quoted)])


def _counts(report: CrawlReport) -> Iterator[tuple[str, int]]:
    yield "discovered", report.ledger.discovered
    for outcome, count in report.ledger.settled.items():
        yield outcome.value, count
    yield "pending", report.ledger.pending


def explanation_text(found: Explanation) -> str:
    reason = f" ({found.reason})" if found.reason else ""
    lines = [f"{found.normalized}: {found.verdict}{reason}: {found.message}"]
    shown = found.publication
    since = f" since {moment(shown.since)}" if shown.since else ""
    lines.append(f"Publication: {shown.message}{since}")
    if found.http_status is not None:
        lines.append(f"HTTP status {found.http_status}")
    if found.duplicate_of:
        lines.append(f"Duplicate of {found.duplicate_of}")
    if found.found_by:
        lines.append("Found by: " + " > ".join(step.url for step in found.found_by[-5:]))
    lines.append(f"Would it be fetched now? {found.outlook.message}")
    lines += [f"- {past.outcome} {moment(past.settled_at)} (job {past.job_id})"
              for past in found.history[:5]]  # fmt: skip
    return "\n".join(lines)


def product_line(product: ListedProduct) -> str:
    price = f"{product.price} {product.currency or ''}".strip() if product.price else "no price"
    facts = [price, product.availability, product.brand, product.domain]
    shown = ", ".join(one_line(fact) for fact in facts if fact)
    return (
        f"- {one_line(product.name)}: {shown}\n"
        f"  {product.url} (product {product.id}, last seen {moment(product.last_seen_at)})"
    )


def price_line(entry: PriceEntry) -> str:
    price = "no price" if entry.price is None else f"{entry.price} {entry.currency or ''}".strip()
    moved = "" if entry.percent is None else f" ({entry.percent:+g} %)"
    return f"- {moment(entry.recorded_at)}: {price}{moved}, {entry.availability or 'unknown'}"
