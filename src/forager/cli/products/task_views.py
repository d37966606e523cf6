"""Output of `forager tasks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forager.cli.output import (
    Columns,
    counted,
    duration,
    long_time,
    note,
    on_one_line,
    plain,
    say,
    show_facts,
    show_rows,
    show_table,
)

if TYPE_CHECKING:
    from forager.tasks.service import TaskReport, TaskStats
    from forager.tasks.task import Task

DOMAINS_NAMED = 5

STYLES = {
    "queued": "cyan",
    "crawling": "cyan",
    "downloaded": "cyan",
    "parsing": "cyan",
    "completed": "green",
    "failed": "red",
    "paused": "yellow",
    "stopped": "yellow",
}


def document(task: Task) -> dict[str, Any]:
    return {**plain(task), "held_by": task.held_by}


def report_document(report: TaskReport) -> dict[str, Any]:
    more = {"every": report.every, "next_at": report.next_at, "why": report.why}
    return document(report.task) | more | {"attempts": report.attempts}


def _note(task: Task) -> str:
    # the status shows only holds on the task itself
    hold = task.held_by if task.all_hold or task.domain_hold else None
    alarm = f"alarm of its domain: {task.domain_alarm}" if task.domain_alarm else None
    return "; ".join(filter(None, (hold, alarm, task.error_message)))


TASK_COLUMNS: Columns = {
    "ID>": "id",
    "STATUS": lambda task: (task.shown_status, STYLES.get(task.shown_status, "")),
    "PRIORITY>": "priority",
    "NEXT": lambda task: {"completed": task.next_crawl_at, "pending": task.scheduled_at}.get(
        task.status
    ),
    "URL…": "url",
    "NOTE…": _note,
}


def note_holds(tasks: Sequence[Task]) -> None:
    """Name the holds on listed tasks, and the commands that end them."""
    everything = next((task.all_hold for task in tasks if task.all_hold), None)
    if everything:
        note(f"All tasks are {everything}: `forager tasks resume --all` resumes them.")
    domains = {task.domain: task.domain_hold for task in tasks if task.domain_hold}
    for domain, hold in list(domains.items())[:DOMAINS_NAMED]:
        note(f"Those of {domain} are {hold}: `forager tasks resume --domain {domain}`")
    if len(domains) > DOMAINS_NAMED:
        note(f"So are those of {counted(len(domains) - DOMAINS_NAMED, 'more domain')}.")


def show_report(report: TaskReport) -> None:
    task = report.task
    facts = {
        "task": task.id,
        "url": task.url,
        "domain": task.domain,
        "status": (task.shown_status, STYLES.get(task.shown_status, "")),
        "on hold": (task.held_by, "yellow") if _is_unsaid(report) else None,
        "now": report.why,
        "next": report.next_at or "when that is done",
        "every": duration(report.every.total_seconds()),
        "priority": task.priority,
        "popularity": f"{task.popularity:g}" if task.popularity else None,
        "rendering": _rendering(task),
        "last visit": task.completed_at,
        "error": on_one_line(task.error_message) if task.error_message else None,
        "retries": f"{task.retry_count} of {task.max_retries}" if task.retry_count else None,
        "failed visits": task.failed_visits or None,
        "tracked": f"{long_time(task.created_at)}, by {task.found_by or 'unknown'}",
    }
    show_facts(facts)
    if report.attempts:
        say("\nLast attempts", style="bold")
        show_rows(_ATTEMPT_COLUMNS, report.attempts)


def _rendering(task: Task) -> str | None:
    if task.render is None and task.needs_browser:
        return "needed: the static response has no price"
    return task.render


def _is_unsaid(report: TaskReport) -> bool:
    """Whether something holds the task that the reason why it does not run leaves out."""
    held_by = report.task.held_by
    return held_by is not None and not str(report.why).startswith(held_by)


def outcome_words(outcome: str) -> str:
    """A result is withheld; only tasks are on hold."""
    return "withheld" if outcome == "held" else outcome


_ATTEMPT_COLUMNS: Columns = {
    "FINISHED": "finished_at",
    "STAGE": "stage",
    "OUTCOME": lambda attempt: outcome_words(attempt.outcome),
    "HTTP>": "http_status",
    "TOOK>": lambda attempt: None if attempt.duration_ms is None else f"{attempt.duration_ms} ms",
    "NOTE…": lambda attempt: on_one_line(attempt.error_message or attempt.final_url or ""),
}


def show_stats(stats: TaskStats) -> None:
    show_table(
        "STATUS, TASKS>",
        [((status.value, STYLES.get(status, "")), count) for status, count in stats.counts.items()],
    )
    say(f"\noldest due      {long_time(stats.oldest_due) or 'nothing is due'}")
    say(f"last scheduled  {long_time(stats.ticked_at) or 'never; run `forager scheduler`'}")
    say(f"on hold         {_held(stats)}")
    if stats.backlog:
        say("\nMost work waiting", style="bold")
        show_rows(
            {
                "DOMAIN": "domain",
                "DUE>": "due",
                "IN PROGRESS>": "under_way",
                "OLDEST": "oldest_due",
            },
            stats.backlog,
        )


def _held(stats: TaskStats) -> str:
    if stats.all_hold is not None:
        return f"all ({stats.all_hold})"
    if not stats.held_domains and not stats.held_tasks:
        return "nothing"
    tasks = counted(stats.held_tasks, "task")
    return f"{counted(stats.held_domains, 'domain')}, {tasks} individually"
