"""Which call of the API does what which command does; and hints in the words of callers.

Errors come from services, which tell people what to type. A program is told what to call.
"""

from __future__ import annotations

import re

# the first call of a command is the one that is named if nothing tells which
CALLS: dict[str, tuple[str, ...]] = {
    "crawl": ("POST /knowledge-items/crawl",),
    "resume": ("POST /jobs/{job_id}/resume",),
    "explain": ("GET /explain",),
    "read": ("GET /documents/read", "GET /sections"),
    "search": ("GET /search",),
    "jobs list": ("GET /jobs",),
    "jobs show": (
        "GET /jobs/{job_id}",
        "GET /crawl-progress/{progress_id}",
        "GET /crawl-progress/{progress_id}/events",
    ),
    "jobs events": ("GET /jobs/{job_id}/events",),
    "jobs pages": ("GET /jobs/{job_id}/pages",),
    "jobs work": ("GET /jobs/work",),
    "jobs workers": ("GET /workers",),
    "jobs prune": ("POST /jobs/prune",),
    "jobs pause": ("POST /jobs/{job_id}/pause", "POST /jobs/bulk"),
    "jobs resume": ("POST /jobs/{job_id}/resume", "POST /jobs/bulk"),
    "jobs cancel": ("POST /jobs/{job_id}/cancel", "POST /jobs/bulk"),
    "jobs retry": ("POST /jobs/{job_id}/retry", "POST /jobs/bulk"),
    "export": ("GET /jobs/{job_id}/export",),
    "sources list": ("GET /sources",),
    "sources show": ("GET /sources/{source_id}",),
    "sources pages": ("GET /documents",),
    "sources generations": ("GET /sources/{source_id}/generations",),
    "sources diff": ("GET /sources/{source_id}/diff",),
    "sources publish": ("POST /sources/{source_id}/publish",),
    "sources rollback": ("POST /sources/{source_id}/rollback",),
    "sources delete": ("DELETE /sources/{source_id}",),
    "sources refresh": ("POST /sources/{source_id}/refresh",),
    "sources schedule": ("PUT /sources/{source_id}/schedule",),
    "sources set": ("PATCH /sources/{source_id}",),
    "products track": ("POST /tasks",),
    "products list": ("GET /products",),
    "products search": ("GET /products",),
    "products show": ("GET /products/{product_id}", "GET /products/by-url"),
    "products history": ("GET /products/{product_id}/history",),
    "products image": ("GET /products/{product_id}/images/{position}",),
    "products export": ("GET /products/export",),
    "products stats": ("GET /products/stats",),
    "products audit": ("POST /products/audit", "GET /products/audit"),
    "tasks list": ("GET /tasks",),
    "tasks show": ("GET /tasks/{task_id}", "GET /tasks/by-url"),
    "tasks stats": ("GET /tasks/stats", "GET /scheduler"),
    "tasks recrawl": ("POST /tasks/recrawl", "POST /tasks/{task_id}/recrawl"),
    "tasks pause": ("POST /tasks/pause", "POST /tasks/{task_id}/pause"),
    "tasks stop": ("POST /tasks/stop", "POST /tasks/{task_id}/stop"),
    "tasks resume": ("POST /tasks/resume", "POST /tasks/{task_id}/resume"),
    "tasks remove": ("POST /tasks/remove", "DELETE /tasks/{task_id}"),
    "tasks set": ("PATCH /tasks", "PATCH /tasks/{task_id}"),
    "errors": ("GET /errors/groups",),
    "errors show": ("GET /errors", "GET /errors/{error_id}"),
    "dead-letters list": ("GET /dead-letters", "GET /dead-letters/groups"),
    "dead-letters retry": ("POST /dead-letters/retry", "POST /dead-letters/{letter_id}/retry"),
    "dead-letters drop": ("POST /dead-letters/drop", "POST /dead-letters/{letter_id}/drop"),
    "domains list": ("GET /domains",),
    "domains show": ("GET /domains/{host}",),
    "domains add": ("POST /domains",),
    "domains set": ("PATCH /domains/{host}",),
    "domains enable": ("PATCH /domains/{host}",),
    "domains disable": ("PATCH /domains/{host}",),
    "domains unblock": ("POST /domains/{host}/unblock",),
    "proxies add": ("POST /proxies",),
    "proxies list": ("GET /proxies",),
    "proxies set": ("PATCH /proxies/{proxy_id}",),
    "proxies costs": ("GET /proxies/costs",),
    "proxies test": ("POST /proxies/{proxy_id}/test",),
    "proxies enable": ("POST /proxies/{proxy_id}/enable",),
    "proxies disable": ("POST /proxies/{proxy_id}/disable",),
    "proxies remove": ("DELETE /proxies/{proxy_id}",),
    "events list": ("GET /events",),
    "webhooks add": ("POST /webhooks",),
    "webhooks list": ("GET /webhooks",),
    "webhooks show": ("GET /webhooks/{webhook_id}",),
    "webhooks set": ("PATCH /webhooks/{webhook_id}",),
    "webhooks remove": ("DELETE /webhooks/{webhook_id}",),
    "webhooks enable": ("POST /webhooks/{webhook_id}/enable",),
    "webhooks disable": ("POST /webhooks/{webhook_id}/disable",),
    "webhooks rotate-secret": ("POST /webhooks/{webhook_id}/rotate-secret",),
    "webhooks test": ("POST /webhooks/{webhook_id}/test",),
    "webhooks deliveries": ("GET /webhooks/{webhook_id}/deliveries",),
    "webhooks retry": ("POST /webhooks/{webhook_id}/retry",),
    "analytics list": ("GET /analytics",),
    "analytics run": ("GET /analytics/answer",),
    "parsers list": ("GET /parsers",),
    "parsers rates": ("GET /parsers/rates",),
    "parsers rollout": ("POST /parsers/{name}/rollout",),
    "parsers rollback": ("POST /parsers/{name}/rollback",),
    "parsers backtest": ("POST /parsers/{name}/backtest",),
    "keys create": ("POST /keys",),
    "keys list": ("GET /keys",),
    "keys show": ("GET /keys/{key_id}", "GET /owners/{user_id}"),
    "keys revoke": ("POST /keys/{key_id}/revoke",),
    "keys set-quota": ("PUT /owners/{user_id}/quota",),
}

# They run processes, or work on files and settings of the machine that they are typed at.
LOCAL = frozenset({
    "up", "api", "worker", "scheduler", "watchdog", "doctor", "demo", "fetch", "parse",
    "parsers new", "parsers test", "config show", "db current", "db upgrade", "db downgrade",
    "db backup", "db restore",
    "search reindex", "sources check", "analytics sync", "products archive", "products restore",
    "archive list", "archive show", "archive verify", "archive prune", "archive read",
    "archive migrate",
})  # fmt: skip

_COMMAND = re.compile(r"`forager ([^`]+)`|(?<=: )forager (.+)$")
_OPTION = re.compile(r"(?<![\w`-])--([a-z][a-z-]+)")
_TWICE = re.compile(r"(`[^`]+`) \(\1\)")
_PARAMETER = re.compile(r"\{\w+\}")


def in_calls(hint: str) -> str:
    """The same hint with calls for commands, and fields for options."""
    hint = _COMMAND.sub(lambda found: _call(found[1] or found[2]), hint)
    hint = _OPTION.sub(lambda found: f"`{found[1].replace('-', '_')}`", hint)
    return _TWICE.sub(r"\1", hint)


def _call(command: str) -> str:
    words = command.split()
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in CALLS:
            return f"`{_filled(CALLS[name], _values(words[length:]))}`"
    # only at the machine itself
    return f"`forager {command}` on the server"


def _values(words: list[str]) -> list[str]:
    """What can stand in a path: no option, no placeholder, no URL."""
    named = [word for word in words if word.startswith("--")]
    return [] if named else [w for w in words if not w.isupper() and "://" not in w]


def _filled(calls: tuple[str, ...], values: list[str]) -> str:
    fitting = (call for call in calls if len(_PARAMETER.findall(call)) == len(values))
    method, _, path = next(fitting, calls[0]).partition(" ")
    for value in values:
        path = _PARAMETER.sub(lambda _, value=value: value, path, count=1)  # type: ignore[misc]
    return f"{method} /api{path}"
