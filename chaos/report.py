"""The report at the end of a run: tables, or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from chaos.recovery import Recovery, median
from chaos.run import Plan, Result
from chaos.violation import Promise
from forager.cli.output import say, show_table

RIGHT = {"justify": "right"}
MOST_SHOWN = 20


def show(result: Result) -> None:
    """Print the tables, the violations, and the command that repeats the run."""
    _show_faults(result)
    say("")
    show_table({"measure": {}, "value": RIGHT}, [(k, _number(v)) for k, v in _numbers(result)])
    say("")
    broken = Counter(violation.promise for violation in result.violations)
    rows = [(p.value, (broken[p], "bold red" if broken[p] else "green")) for p in Promise]
    show_table({"promise": {}, "violations": RIGHT}, rows)
    for violation in result.violations[:MOST_SHOWN]:
        say(f"VIOLATION  {violation.promise}: {violation.what}", "red")
    say("")
    verdict = "no violation" if not result.violations else f"{len(result.violations)} violations"
    say(f"{len(result.done)} faults, {verdict}. Repeat with: {command(result.plan)}", "bold")


def _show_faults(result: Result) -> None:
    counts = Counter(done.kind for done in result.done)
    by_kind = {kind: _waits(result.recoveries, kind) for kind in counts}
    rows = [
        (kind, count, _seconds(median(by_kind[kind])), _seconds(max(by_kind[kind], default=None)))
        for kind, count in sorted(counts.items())
    ]
    every = _waits(result.recoveries, None)
    rows.append(
        ("all", len(result.done), _seconds(median(every)), _seconds(max(every, default=None)))
    )
    columns = {"fault": {}, "count": RIGHT, "median recovery s": RIGHT, "maximum s": RIGHT}
    show_table(columns, rows)


def _numbers(result: Result) -> list[tuple[str, Any]]:
    jobs = ", ".join(f"{count} {status}" for status, count in result.jobs.items())
    return [
        ("seconds", round(result.seconds)),
        ("lost answers (committed, then a timeout)", result.lost_answers),
        ("crawls", jobs),
        ("URLs settled by completed crawls", result.pages),
        ("requests to the site", result.requests),
        ("pages fetched again", result.refetched),
        ("messages received", result.messages),
        ("messages received more than once", result.messages_twice),
        ("snapshots checked", result.checks),
        ("lists read during publications", result.lists_read),
        ("maximum requests above the rate", f"{result.worst_excess:.1f}"),
        ("maximum concurrent requests", result.most_at_once),
    ]


def show_totals(results: Sequence[Result]) -> None:
    """Print one line per run, and the sum."""
    say("")
    numbers = [(len(r.done), r.pages, len(r.violations)) for r in results]
    rows = [(str(r.plan.seed), *row) for r, row in zip(results, numbers, strict=True)]
    rows.append(("all", *(sum(column) for column in zip(*numbers, strict=True))))
    show_table({"seed": {}, "faults": RIGHT, "URLs settled": RIGHT, "violations": RIGHT}, rows)


def as_json(result: Result) -> dict[str, Any]:
    plan = result.plan
    counts = Counter(done.kind for done in result.done)
    kinds = {
        kind: {
            "times": count,
            "median_seconds": median(_waits(result.recoveries, kind)),
            "worst_seconds": max(_waits(result.recoveries, kind), default=None),
        }
        for kind, count in sorted(counts.items())
    }
    return {
        "seed": plan.seed,
        "break": plan.switch or None,
        "again": command(plan),
        "faults": kinds,
        "faults_in_all": len(result.done),
        "done": [{"kind": d.kind, "what": d.what, "over_at": d.over_at} for d in result.done],
        "numbers": dict(_numbers(result)),
        "violations": [{"promise": v.promise, "what": v.what} for v in result.violations],
    }


def command(plan: Plan) -> str:
    arguments = f"--seed {plan.seed} --minutes {plan.seconds / 60:g}"
    arguments += f" --faults {plan.faults} --workers {plan.workers} --pages {plan.pages}"
    arguments += f" --load {plan.load}" if plan.load else ""
    arguments += f" --break {plan.switch}" if plan.switch else ""
    return f'make chaos ARGS="{arguments}"'


def _waits(found: list[Recovery], kind: str | None) -> list[float]:
    return [
        recovery.seconds
        for recovery in found
        if recovery.seconds is not None and kind in (None, recovery.kind)
    ]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
