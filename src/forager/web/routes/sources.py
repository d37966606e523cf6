"""Sources: their generations, what changed between them, and when they are crawled again."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Query
from markupsafe import Markup

from forager.api.problems import problem_of
from forager.crawl.admission import check_addresses, start_refresh
from forager.crawl.declared import PlannedSource, apply_plan, parse_sources, plan_sources
from forager.crawl.results.url_lists import PathNode, path_tree
from forager.crawl.settlement import Outcome
from forager.documents import publication, sources
from forager.documents.diff import ChangedPage, Diff, diff_generations
from forager.documents.freshness import GenerationResult, scheduled_sources
from forager.documents.generation import Schedule, parse_cron, parse_every, reason_of
from forager.documents.page import SectionRow
from forager.documents.reader import list_documents, read_page
from forager.documents.section_diff import aligned_sections
from forager.errors import ForagerError, InvalidInput
from forager.web.charts import BarPart
from forager.web.content import render_changes, render_diffs
from forager.web.errors import message_of
from forager.web.formats import counted
from forager.web.forms import Form, Submitted
from forager.web.job_view import TONES
from forager.web.navigation import as_place
from forager.web.page import Done, WebPage, action, cached, new_router, page
from forager.web.visit import AdminVisit, OperatorVisit, ReaderVisit, WebVisit

router = new_router()

GENERATIONS = 20
MAX_DIFF = 200

SourceId = Annotated[str, Path(max_length=500)]
Number = Annotated[int | None, Query(ge=1, le=2**31 - 1)]
Text = Annotated[str, Query(max_length=2000)]
Cursor = Annotated[str | None, Query(max_length=5000)]


@page(router, "/sources")
async def list_sources(visit: ReaderVisit) -> WebPage:
    owner = visit.caller.sees_only
    found = await sources.list_sources(visit.database, user_id=owner, **visit.paging)
    return WebPage("sources.html", sources=found)


EXAMPLE = """sources:
  - name: docs
    url: https://docs.example.org/
    schedule: 1d
    max_pages: 1000"""


@page(router, "/new-sources")
async def new_sources(visit: AdminVisit) -> WebPage:
    return WebPage("new_sources.html", given="", plan=[], problem=None, example=EXAMPLE)


@action(router, "/new-sources")
async def apply_sources(visit: AdminVisit, form: Submitted) -> Done | WebPage:
    """Show what a pasted file would change, or apply it."""
    plan: list[PlannedSource] = []
    problem = None
    try:
        declared = await asyncio.to_thread(parse_sources, form.text("text"))
        for each in declared:
            check_addresses(each.options(), visit.caller, visit.settings)
        plan = await plan_sources(visit.database, visit.settings, declared)
        if form.checked("apply"):
            done = await apply_plan(visit.database, visit.settings, plan, actor=visit.caller.actor)
            return Done(f"{counted(len(done), 'source')} applied.", to="/sources", leaves=True)
    except ForagerError as error:
        problem = error
    text = None if problem is None else message_of(problem_of(problem, as_place))
    return WebPage(
        "new_sources.html", given=form.text("text"), plan=plan, problem=text, example=EXAMPLE
    ).after(problem)


@page(router, "/schedules")
async def list_schedules(visit: ReaderVisit) -> WebPage:
    owner = visit.caller.sees_only
    found = await scheduled_sources(visit.database, user_id=owner, **visit.paging)
    bars = {each.id: [_result_bar(result) for result in each.results] for each in found.items}
    return WebPage("schedules.html", scheduled=found, bars=bars)


def _result_bar(result: GenerationResult) -> BarPart:
    """Green if it was published, red if it was held back, and amber if pages were carried over."""
    state = "published" if result.published_at else f"held back: {reason_of(result.note)}"
    tone = "d" if not result.published_at else "c" if result.carried_over else "a"
    name = f"Generation {result.number}: {counted(result.pages, 'page')}, {state}"
    return BarPart(name, result.pages, tone)


@page(router, "/sources/{source_id}")
async def show(visit: ReaderVisit, source_id: SourceId, cursor: Cursor = None) -> WebPage:
    source = await visit.get_source(source_id)
    found = await sources.list_generations(
        visit.database, source_id, cursor=cursor, limit=GENERATIONS
    )
    return WebPage(
        "source.html",
        source=source,
        generations=found,
        largest=max((each.pages for each in found.items), default=0),
        base=_url(source_id),
    )


@page(router, "/sources/{source_id}/pages")
async def pages(visit: ReaderVisit, source_id: SourceId, path: Text = "") -> WebPage:
    source = await visit.get_source(source_id)
    found = await list_documents(visit.database, source_id, path=path, **visit.paging)
    return WebPage(
        "source_pages.html", source=source, pages=found, wanted=path, base=_url(source_id)
    )


@page(router, "/sources/{source_id}/tree")
async def tree(visit: ReaderVisit, source_id: SourceId, prefix: Text = "") -> WebPage:
    source = await visit.get_source(source_id)
    known = await sources.list_generations(visit.database, source_id, limit=GENERATIONS)
    generation = next((each for each in known.items if each.is_complete), None)
    job_id = None if generation is None else generation.job_id
    found = None
    if job_id is not None:
        load = functools.partial(path_tree, visit.database, job_id, prefix)
        found = await cached(visit, load, job_id)
    return WebPage(
        "source_tree.html",
        source=source,
        base=_url(source_id),
        job_id=job_id,
        generation=generation,
        tree=found.answer if found else None,
        at=found.at if found else None,
        parts=[_parts(node) for node in found.answer.nodes] if found else [],
        crumbs=_crumbs(found.answer.prefix) if found else [],
        outcomes=list(Outcome),
    )


def _parts(node: PathNode) -> list[BarPart]:
    return [BarPart(each.value, node.urls.get(each, 0), TONES[each]) for each in Outcome]


def _crumbs(prefix: str) -> list[tuple[str, str]]:
    """The folders that lead to a prefix: URL and name."""
    scheme, _, rest = prefix.partition("://")
    parts = rest.split("/")[:-1]
    urls = [f"{scheme}://{'/'.join(parts[: depth + 1])}/" for depth in range(len(parts))]
    return list(zip(urls, parts, strict=True))


@page(router, "/sources/{source_id}/diff")
async def diff(
    visit: ReaderVisit,
    source_id: SourceId,
    old: Number = None,
    new: Number = None,
    url: Annotated[str, Query(alias="page", max_length=10_000)] = "",
) -> WebPage:
    source = await visit.get_source(source_id)
    found = await diff_generations(
        visit.database, source_id, old, new, with_sections=True, limit=MAX_DIFF
    )
    known = await sources.list_generations(visit.database, source_id, limit=GENERATIONS)
    pages = [*found.changed, *found.added, *found.removed]
    chosen = next((each for each in pages if each.url == url), next(iter(pages), None))
    return WebPage(
        "source_diff.html",
        source=source,
        diff=found,
        chosen=chosen,
        sections=await _compared(visit, found, chosen) if chosen else [],
        lines=visit.request.query_params.get("view") == "lines",
        line_diffs=await render_diffs([c.diff for c in chosen.sections], side=False)
        if chosen
        else [],
        versions=[each for each in known.items if each.is_complete],
        base=_url(source_id),
        limit=MAX_DIFF,
    )


@dataclass(frozen=True, slots=True)
class ComparedSection:
    """A section of a page as it is or was: added, removed, changed or the same."""

    heading: str
    level: int
    state: str
    html: Markup


async def _compared(visit: WebVisit, diff: Diff, page: ChangedPage) -> list[ComparedSection]:
    """The page with what was added and removed in it."""
    old = [] if page in diff.added else await _sections(visit, diff, page, diff.old)
    new = [] if page in diff.removed else await _sections(visit, diff, page, diff.new)
    pairs = aligned_sections(old, new)
    texts = [(a.content if a else "", b.content if b else "") for a, b in pairs]
    return [
        ComparedSection(each.heading, each.level, _state_of(before, after), html)
        for (before, after), html in zip(pairs, await render_changes(texts), strict=True)
        if (each := after or before) is not None
    ]


def _state_of(before: SectionRow | None, after: SectionRow | None) -> str:
    if before is None or after is None:
        return "removed" if after is None else "added"
    same = (before.heading, before.content) == (after.heading, after.content)
    return "same" if same else "changed"


async def _sections(
    visit: WebVisit, diff: Diff, page: ChangedPage, number: int
) -> Sequence[SectionRow]:
    found = await read_page(visit.database, page.url, source_id=diff.source_id, generation=number)
    return found.sections


@action(router, "/sources/{source_id}/publish")
async def publish(visit: OperatorVisit, form: Submitted, source_id: SourceId) -> Done:
    await visit.get_source(source_id)
    done = await publication.publish(
        visit.database, source_id, form.number("generation", least=1), force=form.checked("force")
    )
    return Done(f"Generation {done.number} is now published.", to=_url(source_id))


@action(router, "/sources/{source_id}/rollback")
async def roll_back(visit: OperatorVisit, form: Submitted, source_id: SourceId) -> Done:
    await visit.get_source(source_id)
    number = form.number("generation", least=1)
    done = await publication.roll_back(visit.database, source_id, number)
    return Done(f"Generation {done.number} is published again.", to=_url(source_id))


@action(router, "/sources/{source_id}/refresh")
async def refresh(visit: OperatorVisit, form: Submitted, source_id: SourceId) -> Done:
    source = await visit.get_source(source_id)
    asked = await start_refresh(visit.context, source)
    text = "started" if asked.created else "is already running"
    return Done(f"Crawl of {source_id} {text}.", to=f"/jobs/{asked.job.id}", leaves=True)


@action(router, "/sources/{source_id}/schedule")
async def schedule(visit: OperatorVisit, form: Submitted, source_id: SourceId) -> Done:
    await visit.get_source(source_id)
    wanted = _schedule(form)
    await sources.set_schedule(visit.database, source_id, wanted)
    text = "Schedule saved." if wanted != Schedule() else "Schedule removed."
    return Done(text, to=_url(source_id))


@action(router, "/sources/{source_id}/limits")
async def limits(visit: OperatorVisit, form: Submitted, source_id: SourceId) -> Done:
    await visit.get_source(source_id)
    shrink, failed = form.amount("max_shrink", most=100), form.amount("max_failed", most=100)
    await sources.set_limits(
        visit.database,
        source_id,
        keep=form.number("keep", least=1),
        max_shrink=None if shrink is None else shrink / 100,
        max_failed=None if failed is None else failed / 100,
    )
    return Done("Limits saved.", to=_url(source_id))


@action(router, "/sources/{source_id}/delete")
async def delete(visit: OperatorVisit, form: Submitted, source_id: SourceId) -> Done:
    await visit.get_source(source_id)
    await sources.delete_source(visit.database, source_id)
    return Done(f"{source_id} deleted.", to="/sources", leaves=True)


def _schedule(form: Form) -> Schedule:
    every, cron = form.text("every"), form.text("cron")
    if every and cron:
        raise InvalidInput(
            "a schedule is either an interval or a cron expression",
            hint="Leave one of the two empty.",
        )
    if cron:
        return parse_cron(cron)
    return parse_every(every) if every else Schedule()


def _url(source_id: str) -> str:
    return f"/sources/{quote(source_id, safe='')}"
