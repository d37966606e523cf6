"""Sources, generations and differences in the words people read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from forager.cli.output import (
    Columns,
    counted,
    duration,
    long_time,
    note,
    on_one_line,
    say,
    short_time,
    show_facts,
)

if TYPE_CHECKING:
    from forager.documents.check import Findings, SourceCheck
    from forager.documents.diff import ChangedPage, Diff
    from forager.documents.generation import Generation, Source
    from forager.extract.audit import PageAudit

_STYLES = {"published": "green", "building": "cyan", "retired": "", "abandoned": "dim"}


def _now(source: Source) -> str:
    if source.active_job is None:
        return ""
    return "crawl paused" if source.is_paused else "being crawled"


def show_source(source: Source) -> None:
    facts = {
        "source": source.id,
        "base url": source.base_url,
        "published": _published_words(source),
        "pages": source.pages,
        "language": source.text_config or "not known yet",
        "generations": f"{source.generations} so far; the last {source.keep_generations} are kept",
        "gate": f"at most {source.max_shrink:.0%} fewer pages, {source.max_failed:.0%} failures",
        "refresh": schedule_words(source) or "when asked",
        "next": source.next_refresh_at,
        "job": source.active_job or "",
    }
    show_facts(facts)


def _published_words(source: Source) -> str:
    if source.published_number is None:
        return "nothing yet"
    return f"generation {source.published_number}, {long_time(source.published_at)}"


def schedule_words(source: Source) -> str:
    if source.refresh_every is not None:
        return f"every {duration(source.refresh_every)}"
    return f"cron {source.refresh_cron} (UTC)" if source.refresh_cron else ""


SOURCE_COLUMNS: Columns = {
    "SOURCE": "id",
    "PAGES>": "pages",
    "GENERATION>": "published_number",
    "PUBLISHED": "published_at",
    "REFRESH": schedule_words,
    "NEXT": "next_refresh_at",
    "NOW": _now,
}


GENERATION_COLUMNS: Columns = {
    "NUMBER>": "number",
    "STATE": lambda generation: (generation.state.value, _STYLES[generation.state]),
    "PAGES>": "pages",
    "ADDED>": "added",
    "CHANGED>": "changed",
    "REMOVED>": "removed",
    "SAME>": "unchanged",
    "CARRIED>": "carried_over",
    "CREATED": "created_at",
    "PUBLISHED": "published_at",
    "NOTE": "note",
}


PAGE_COLUMNS: Columns = {
    "URL": "url",
    "TITLE": "title",
    "FETCHED": "fetched_at",
}


def show_diff(diff: Diff) -> None:
    """One line per page."""
    for renamed in diff.renamed:
        say(f"R {renamed.old_url} -> {renamed.new_url}", "cyan")
    for page in diff.added:
        say(f"A {page.url}", "green")
    for page in diff.removed:
        say(f"D {page.url}", "red")
    for page in diff.changed:
        say(f"C {page.url}", "yellow")
        _show_sections(page)
    for carried in diff.carried_over:
        since = f"failing since {short_time(carried.since)}"
        say(f"K {carried.url} ({carried.reason}, {since}, refresh {carried.times})", "magenta")
    note(
        f"generation {diff.old} to {diff.new}: {len(diff.added)} added, "
        f"{len(diff.removed)} removed, {len(diff.changed)} changed, {len(diff.renamed)} renamed, "
        f"{len(diff.carried_over)} carried over"
    )
    if diff.truncated:
        note("There are more differences: raise --limit.")


def _show_sections(page: ChangedPage) -> None:
    for section in page.sections:
        where = f"#{section.anchor}" if section.anchor else ""
        say(f"  {section.kind}: {on_one_line(section.heading)} {where}".rstrip(), "bold")
        for line in section.diff.splitlines()[2:]:
            say("    " + line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], ""))


def show_published(generation: Generation) -> None:
    pages = counted(generation.pages, "page")
    say(f"{generation.source_id}: generation {generation.number} is published ({pages})")


def show_schedule(source: Source) -> None:
    words = schedule_words(source) or "only when asked"
    following = f"; next {long_time(source.next_refresh_at)}" if source.next_refresh_at else ""
    say(f"{source.id} is refreshed {words}{following}")


_LISTED = 10  # pages of each kind; --json has more


def show_check(check: SourceCheck) -> None:
    say(f"{counted(check.pages, 'page')} of {check.source_id} checked", "bold")
    if check.unreadable:
        note(f"{counted(check.unreadable, 'page')} not in the archive: not checked")
    findings: list[tuple[str, Findings, Callable[[PageAudit], str]]] = [
        ("empty", check.empty, lambda page: f"{page.visible} characters visible"),
        ("under 20 % of the text kept", check.gutted, lambda page: f"{page.kept_share:.0%} kept"),
        (
            f"headings lost: {check.headings_lost} of {check.headings}",
            check.losing_headings,
            lambda page: "; ".join(page.lost_headings[:3]),
        ),
        (
            f"sections over 20 KB: {check.large_sections}",
            check.with_large_sections,
            lambda page: "; ".join(page.large_sections[:3]),
        ),
        ("main content by fallback", check.by_fallback, lambda page: page.chosen_by),
    ]
    for name, found, details in findings:
        say(f"{name}: {counted(found.count, 'page')}", "yellow" if found.count else "green")
        for page in found.pages[:_LISTED]:
            say(f"  {page.url}  {on_one_line(details(page))}")
        if found.count > _LISTED:
            say(f"  … {found.count - _LISTED} more; --json lists them")
    near = check.near_duplicates
    clusters = counted(near.clusters, "cluster")
    say(f"nearly the same text: {counted(near.pages, 'page')} in {clusters}")
    for cluster in near.largest[:_LISTED]:
        say(f"  {cluster.pages} pages: {cluster.first_url} … {cluster.last_url}")
