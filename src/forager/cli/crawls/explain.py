"""`forager explain`: the outcome of a URL, why, and whether it would be fetched now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from forager.cli.crawls.crawl import checked_options
from forager.cli.crawls.crawl_flags import RequestOptions
from forager.cli.crawls.parse import show_removed
from forager.cli.options import AsJson, grouped, option, switch
from forager.cli.output import counted, fields_of, say, short_time, show_json, write
from forager.cli.running import CommandServices, answers, with_services
from forager.crawl.explain import explanation
from forager.crawl.explain.explanation import Explanation
from forager.crawl.explain.probe import Probe, probe
from forager.crawl.operations.explain import Explanation as ExplanationView
from forager.documents.operations.sources import STATE_STYLES
from forager.documents.visibility import PageVisibility
from forager.hints import as_command


@grouped
def fetch(
    context: typer.Context,
    url: Annotated[str, typer.Argument(help="URL to fetch.")],
    request: RequestOptions,
    body: bool = switch("Print the body and nothing else.", "--body"),
    render: bool = switch("Render the page in a browser, and show that page.", "--render"),
    screenshot: Path | None = option(
        "Write a picture of the rendered page to this file (PNG).", dir_okay=False
    ),
    as_json: AsJson = False,
) -> None:
    """Fetch one URL and show headers, timing, redirects and the robots.txt decision."""
    options = checked_options(request.payload(url))
    render = render or screenshot is not None
    wants_picture = screenshot is not None
    result = with_services(
        context,
        lambda services: probe(
            services.database, services.settings, options, render=render, screenshot=wants_picture
        ),
    )
    if screenshot is not None and result.rendered is not None:
        screenshot.write_bytes(result.rendered.screenshot)
    if body:
        write(result.rendered.html if result.rendered else result.response.body)
    elif as_json:
        show_json(_as_json(result))
    else:
        _show_response(result)


def _as_json(result: Probe) -> dict[str, Any]:
    response, facts = result.response, result.facts
    answer: dict[str, Any] = {
        "url": response.url,
        "status": response.status,
        "problem": result.problem,
        "redirects": [fields_of(hop, "url", "status") for hop in result.hops],
        "robots": result.robots,
        "headers": [list(pair) for pair in response.headers.items()],
        **fields_of(response, "timing", "peer", "http_version"),
        "size": len(response.body),
        "wire_size": response.wire_size,
    }
    if (rendered := result.rendered) is not None:
        answer["rendered"] = {
            "url": rendered.url,
            "redirect": rendered.moved,
            "seconds": round(rendered.seconds, 3),
            "size": len(rendered.html),
            "stable": not rendered.cut,
            "routes": rendered.routes,
            "resources": rendered.resources,
        }
    if facts is not None:
        answer["page"] = {
            **fields_of(facts, "kind", "encoding", "title", "language", "canonical"),
            "noindex": facts.directives.noindex,
            "nofollow": facts.directives.nofollow,
            "links": len(facts.outlinks.links),
            **fields_of(facts, "needs_javascript", "soft_error", "truncated"),
        }
    return answer


def _show_response(result: Probe) -> None:
    response, timing = result.response, result.response.timing
    for hop in result.hops:
        say(f"{hop.status} {hop.url}")
    say(f"{response.status} {response.reason} {response.url}", "bold")
    if result.problem:
        say(f"problem: {result.problem}")
    robots = "allowed" if result.robots.allowed else "not allowed"
    say(f"robots.txt: {robots} ({result.robots.reason})")
    connected = "" if timing.connect is None else f"connected in {timing.connect * 1000:.0f} ms, "
    say(
        f"{connected}first byte after {timing.first_byte * 1000:.0f} ms,"
        f" complete after {timing.total * 1000:.0f} ms; {len(response.body):,} bytes"
        f" ({response.wire_size:,} on the wire) from {response.peer}, HTTP/{response.http_version}"
    )
    for name, value in response.headers.items():
        say(f"  {name}: {value}")
    if (rendered := result.rendered) is not None:
        say("rendered", "bold")
        if rendered.moved:
            say(f"  a script leads to {rendered.moved}")
        say(
            f"  {rendered.requests} requests, {rendered.bytes:,} bytes, {rendered.seconds:.1f} s;"
            f" {len(rendered.html):,} bytes of HTML"
        )
        for each in rendered.resources:
            outcome = f"refused: {each.refused}" if each.refused else f"{each.status}"
            say(f"  {each.type:<10} {outcome}  {each.url[:200]}")
    page = _as_json(result).get("page", {})
    if page:
        say("page", "bold")
    for name, value in page.items():
        if value not in (None, False, ()):
            say(f"  {name.replace('_', ' ')}: {value}")


def _show(found: Explanation) -> None:
    if (task := found.task) is not None:
        say(f"tracked as task {task.task_id} ({task.status}): {task.why}", "bold")
        if task.last_attempt:
            say(f"  last attempt {short_time(task.last_at)}: {task.last_attempt}")
    _show_outcome(found)
    say(f"now: {found.outlook.message}", "bold")
    for check in found.outlook.checks:
        say(f"  {check.name:<9} {check.answer.value:<8} {check.message}")
    if found.history:
        say("in the last crawls", "bold")
    for past in found.history:
        why = ": ".join(each for each in (past.reason, past.detail) if each)
        status = f"HTTP {past.http_status}" if past.http_status else ""
        text = "  ".join(each for each in (status, why) if each)
        when = short_time(past.settled_at)
        say(f"  {when}  {past.outcome:<9} job {past.job_id}  {text}".rstrip())
    if found.content is not None:
        say(f"main content found by {found.content.chosen_by}", "bold")
        show_removed(found.content.removed)


@answers(_show, document=lambda found: ExplanationView.build(found, as_command))
async def explain(
    services: CommandServices,
    url: Annotated[str, typer.Argument(help="URL to look up.")],
    job: str | None = option("Job to look in.", show_default="the latest job with this URL"),
) -> object:
    """Show the outcome of a URL, and whether it would be fetched now; nothing is fetched."""
    job_id = await services.queue.resolve(job) if job else None
    return await explanation.explain(
        services.database, services.queue, url, job_id=job_id, archive=services.archive
    )


def _show_publication(page: PageVisibility) -> None:
    since = f" since {short_time(page.since)}" if page.since else ""
    say(f"{page.message}{since}", STATE_STYLES[page.state] if page.state else "")
    if page.hint is not None:
        say(f"  {page.hint}")


def _show_outcome(explanation: Explanation) -> None:
    reason = f" ({explanation.reason})" if explanation.reason else ""
    say(f"{explanation.verdict}{reason}: {explanation.message}", "bold")
    _show_publication(explanation.publication)
    if explanation.job_id:
        say(f"job {explanation.job_id}")
    if explanation.rendering:
        say(explanation.rendering)
    if (near := explanation.near_duplicates) is not None:
        say(f"kept, although {counted(near.pages, 'page')} of the crawl have nearly the same text:")
        for url in near.urls:
            say(f"  {url}")
    if explanation.duplicate_of:
        say(f"same as {explanation.duplicate_of}")
    if carried := explanation.carried_over:
        since = short_time(carried.since)
        say(f"carried over: failing since {since}; refreshes in a row: {carried.times}")
    if explanation.normalized != explanation.url:
        for step in explanation.steps:
            say(f"  {step}")
    if explanation.found_by:
        say("found by")
    for page in explanation.found_by:
        say(f"  {page.via:<9} {page.url}")
