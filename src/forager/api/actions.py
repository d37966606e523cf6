"""Every action in all its forms: the command, the calls of the API, the place in the dashboard."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BeforeValidator

from forager.hints import Action, Hint, Option, as_command, render

API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Forms:
    """An action without calls, or without a page, works only as a command on the server.

    Of several calls, the arguments of a hint decide; the first is the default.
    """

    calls: tuple[str, ...] = ()
    page: str = ""
    button: str = ""


def _on(page: str, *calls: str, button: str = "") -> Forms:
    return Forms(calls, page, button)


# by command; an option is part of the name where it leads to another place
ACTIONS: dict[str, Forms] = {
    "crawl": _on("Jobs", "POST /crawls", "POST /crawls/preview", button="New crawl"),
    "templates list": _on("New crawl", "GET /crawl-templates"),
    "templates show": _on("New crawl", "GET /crawl-templates/{template}"),
    "templates save": _on("New crawl", "PUT /crawl-templates/{template}", button="Save template"),
    "templates delete": _on("New crawl", "DELETE /crawl-templates/{template}", button="Delete"),
    "resume": _on("Jobs", "POST /jobs/{job_id}/resume", button="Resume"),
    "explain": _on("Explain", "GET /explain"),
    "read": _on("Search", "GET /documents/read", "GET /sections"),
    "search": _on("Search", "GET /search"),
    "jobs list": _on("Jobs", "GET /jobs", "GET /crawls"),
    "jobs show": _on(
        "Jobs",
        "GET /jobs/{job_id}",
        "GET /crawls/{crawl_id}",
        "GET /crawls/{crawl_id}/events",
    ),
    "jobs events": _on("Jobs", "GET /jobs/{job_id}/events"),
    "jobs pages": _on("Jobs", "GET /jobs/{job_id}/pages", "GET /jobs/{job_id}/pending"),
    "jobs work": _on("Jobs", "GET /jobs/work"),
    "jobs workers": _on("Workers", "GET /workers"),
    "jobs prune": Forms(("POST /jobs/prune",)),
    "jobs pause": _on("Jobs", "POST /jobs/{job_id}/pause", "POST /jobs/bulk", button="Pause"),
    "jobs resume": _on("Jobs", "POST /jobs/{job_id}/resume", "POST /jobs/bulk", button="Resume"),
    "jobs cancel": _on(
        "Jobs",
        "POST /jobs/{job_id}/cancel",
        "POST /jobs/bulk",
        "DELETE /crawls/{crawl_id}",
        button="Cancel job",
    ),
    "jobs retry": _on("Jobs", "POST /jobs/{job_id}/retry", "POST /jobs/bulk", button="Retry"),
    "jobs retry-failed": _on("Jobs", "POST /jobs/{job_id}/retry-failed", button="Retry these"),
    "export": _on("Jobs", "GET /jobs/{job_id}/export", "GET /sources/{source_id}/export"),
    "sources list": _on("Sources", "GET /sources"),
    "sources show": _on("Sources", "GET /sources/{source_id}"),
    "sources pages": _on("Sources", "GET /documents"),
    "sources generations": _on("Sources", "GET /sources/{source_id}/generations"),
    "sources diff": _on("Sources", "GET /sources/{source_id}/diff"),
    "sources publish": _on("Sources", "POST /sources/{source_id}/publish", button="Publish"),
    "sources rollback": _on("Sources", "POST /sources/{source_id}/rollback", button="Roll back"),
    "sources delete": _on("Sources", "DELETE /sources/{source_id}"),
    "sources refresh": _on("Sources", "POST /sources/{source_id}/refresh", button="Refresh now"),
    "sources schedule": _on(
        "Sources", "PUT /sources/{source_id}/schedule", "DELETE /sources/{source_id}/schedule"
    ),
    "sources set": _on("Sources", "PATCH /sources/{source_id}"),
    "products track": _on("Products", "POST /tasks", button="Track a product"),
    "products list": _on("Products", "GET /products"),
    "products search": _on("Products", "GET /products"),
    "products show": _on("Products", "GET /products/{product_id}", "GET /products/by-url"),
    "products offers": _on("Products", "GET /products/{product_id}/offers", "GET /products/offers"),
    "products changes": _on("Products", "GET /products/changes"),
    "products history": _on("Products", "GET /products/{product_id}/history"),
    "products image": _on("Products", "GET /products/{product_id}/images/{position}"),
    "products export": _on("Products", "GET /products/export"),
    "products stats": _on("Products", "GET /products/stats"),
    "products audit": _on("Audit", "POST /products/audit", "GET /products/audit", button="Run now"),
    "tasks list": _on("Tasks", "GET /tasks"),
    "tasks show": _on("Tasks", "GET /tasks/{task_id}", "GET /tasks/by-url"),
    "tasks page": _on("Tasks", "GET /tasks/{task_id}/page"),
    "tasks stats": _on("Tasks", "GET /tasks/stats", "GET /scheduler"),
    "tasks recrawl": _on(
        "Tasks", "POST /tasks/recrawl", "POST /tasks/{task_id}/recrawl", button="Recrawl now"
    ),
    "tasks pause": _on("Tasks", "POST /tasks/pause", "POST /tasks/{task_id}/pause", button="Pause"),
    "tasks stop": _on("Tasks", "POST /tasks/stop", "POST /tasks/{task_id}/stop", button="Stop"),
    "tasks resume": _on(
        "Tasks", "POST /tasks/resume", "POST /tasks/{task_id}/resume", button="Resume"
    ),
    "tasks resume --all": _on("Tasks", "POST /tasks/resume", button="Resume all"),
    "tasks resume --domain": _on("Domains", "POST /tasks/resume", button="Resume tasks"),
    "tasks remove": _on("Tasks", "POST /tasks/remove", "DELETE /tasks/{task_id}"),
    "tasks set": _on("Tasks", "PATCH /tasks", "PATCH /tasks/{task_id}"),
    "errors": _on("Errors", "GET /errors/groups"),
    "errors show": _on("Errors", "GET /errors", "GET /errors/{error_id}"),
    "dead-letters list": _on("Errors", "GET /dead-letters", "GET /dead-letters/groups"),
    "dead-letters retry": _on(
        "Errors", "POST /dead-letters/retry", "POST /dead-letters/{letter_id}/retry", button="Retry"
    ),
    "dead-letters drop": _on(
        "Errors", "POST /dead-letters/drop", "DELETE /dead-letters/{letter_id}"
    ),
    "domains list": _on("Domains", "GET /domains"),
    "domains show": _on("Domains", "GET /domains/{host}"),
    "domains add": _on("Domains", "POST /domains", button="Add"),
    "domains set": _on("Domains", "PATCH /domains/{host}", "PATCH /domains"),
    "domains enable": _on("Domains", "PATCH /domains/{host}", button="Allow requests"),
    "domains disable": _on("Domains", "PATCH /domains/{host}", button="Allow requests"),
    "domains unblock": _on("Domains", "POST /domains/{host}/unblock"),
    "domains alarms": _on("Domains", "GET /domain-alarms"),
    "domains resolve": _on("Domains", "POST /domains/{host}/alarm", button="Accept results"),
    "proxies add": _on("Proxies", "POST /proxies", button="Add"),
    "proxies list": _on("Proxies", "GET /proxies"),
    "proxies set": _on("Proxies", "PATCH /proxies/{proxy_id}"),
    "proxies costs": _on("Proxies", "GET /proxies/costs"),
    "proxies test": _on("Proxies", "POST /proxies/{proxy_id}/test", button="Test"),
    "proxies enable": _on("Proxies", "POST /proxies/{proxy_id}/enable", button="Enable"),
    "proxies disable": _on("Proxies", "POST /proxies/{proxy_id}/disable", button="Disable"),
    "proxies remove": _on("Proxies", "DELETE /proxies/{proxy_id}", button="Remove"),
    "events list": _on("Events", "GET /events"),
    "alerts add": _on("Alerts", "POST /alerts", button="Add"),
    "alerts list": _on("Alerts", "GET /alerts"),
    "alerts delete": _on("Alerts", "DELETE /alerts/{rule_id}", button="Delete"),
    "webhooks add": _on("Webhooks", "POST /webhooks", button="Add"),
    "webhooks list": _on("Webhooks", "GET /webhooks"),
    "webhooks show": _on("Webhooks", "GET /webhooks/{webhook_id}"),
    "webhooks set": _on("Webhooks", "PATCH /webhooks/{webhook_id}", button="Save"),
    "webhooks remove": _on("Webhooks", "DELETE /webhooks/{webhook_id}", button="Remove"),
    "webhooks enable": _on("Webhooks", "POST /webhooks/{webhook_id}/enable", button="Enable"),
    "webhooks disable": _on("Webhooks", "POST /webhooks/{webhook_id}/disable", button="Disable"),
    "webhooks rotate-secret": _on("Webhooks", "POST /webhooks/{webhook_id}/rotate-secret"),
    "webhooks test": _on("Webhooks", "POST /webhooks/{webhook_id}/test"),
    "webhooks deliveries": _on("Webhooks", "GET /webhooks/{webhook_id}/deliveries"),
    "webhooks delivery": _on("Webhooks", "GET /webhooks/{webhook_id}/deliveries/{message_id}"),
    "webhooks retry": _on("Webhooks", "POST /webhooks/{webhook_id}/retry", button="Retry failed"),
    "analytics list": _on("Analytics", "GET /analytics"),
    "analytics run": _on("Analytics", "GET /analytics/answer"),
    "parsers list": _on("Parsers", "GET /parsers"),
    "parsers rates": _on("Parsers", "GET /parsers/rates"),
    "parsers rollout": _on("Parsers", "POST /parsers/{name}/rollout", button="Roll out"),
    "parsers rollback": _on("Parsers", "POST /parsers/{name}/rollback", button="Roll back"),
    "parsers backtest": _on("Parsers", "POST /parsers/{name}/backtest", button="Compare"),
    "keys create": _on("Keys", "POST /keys", button="Create key"),
    "keys list": _on("Keys", "GET /keys"),
    "keys show": _on("Keys", "GET /keys/{key_id}", "GET /owners/{user_id}"),
    "keys revoke": _on("Keys", "DELETE /keys/{key_id}", button="Revoke"),
    "keys set-quota": Forms(("PUT /owners/{user_id}/quota",)),
    # they run processes, or work on files and settings of the server
    **dict.fromkeys(
        (
            "up", "api", "worker", "scheduler", "watchdog", "doctor", "demo", "fetch", "parse",
            "support-bundle",
            "parsers new", "parsers test", "config show", "db current", "db upgrade",
            "db downgrade", "db backup", "db restore", "search reindex", "sources check",
            "analytics sync", "products archive", "products restore", "archive list",
            "archive show", "archive verify", "archive prune", "archive read", "archive migrate",
            "mcp", "sources apply", "db stop",
        ),
        Forms(),
    ),
}  # fmt: skip

_PARAMETER = re.compile(r"\{\w+\}")


def forms_of(action: Action) -> Forms:
    special = (f"{action.name} --{name}" for name, _ in action.options)
    return next((ACTIONS[name] for name in special if name in ACTIONS), ACTIONS[action.name])


def path_values(action: Action) -> list[str]:
    """The arguments that can stand in a path: placeholders and URLs cannot."""
    given = [] if action.options else [str(arg) for arg in action.args]
    return [quote(arg, safe="") for arg in given if not arg.isupper() and "://" not in arg]


def as_call(part: Action | Option) -> str:
    """The call of the API, or the field of its body."""
    if isinstance(part, Option):
        return f"`{part.name}`"
    calls, values = forms_of(part).calls, path_values(part)
    if not calls:
        return f"{as_command(part)} on the server"
    fitting = (call for call in calls if len(_PARAMETER.findall(call)) == len(values))
    method, _, path = next(fitting, calls[0]).partition(" ")
    for value in values:
        path = _PARAMETER.sub(lambda _, value=value: value, path, count=1)  # type: ignore[misc]
    return f"`{method} {API}{path}`"


def _hint_text(value: Any) -> Any:
    return render(value, as_call) if isinstance(value, Hint) else value


# a field of an answer that may name actions
HintText = Annotated[str, BeforeValidator(_hint_text)]
