"""Hints in the words of people at the dashboard: what to click where others are told what to type.

Errors come from services, which name commands. `api/commands.py` does the same for programs.
"""

from __future__ import annotations

import re

# where to look; the names are those of the menu
PAGES: dict[str, str] = {
    "jobs": "Jobs",
    "resume": "Jobs",
    "export": "Jobs",
    "sources": "Sources",
    "read": "Search",
    "search": "Search",
    "explain": "Explain",
    "products": "Products",
    "tasks": "Tasks",
    "errors": "Errors",
    "dead-letters": "Errors",
    "domains": "Domains",
    "proxies": "Proxies",
    "events": "Events",
    "webhooks": "Webhooks",
    "parsers": "Parsers",
    "analytics": "Analytics",
    "keys": "Keys",
}

# what to click there, where it is more than to look
BUTTONS: dict[str, str] = {
    "resume": "Resume",
    "jobs pause": "Pause",
    "jobs resume": "Resume",
    "jobs cancel": "Cancel job",
    "jobs retry": "Retry",
    "sources publish": "Publish",
    "sources rollback": "Roll back",
    "sources refresh": "Refresh now",
    "tasks recrawl": "Recrawl now",
    "tasks pause": "Pause",
    "tasks stop": "Stop",
    "tasks resume": "Resume",
    "tasks remove": "Stop tracking",
    "dead-letters retry": "Retry",
    "dead-letters drop": "Dismiss",
    "domains add": "Add",
    "domains set": "Save",
    "domains enable": "Allow requests",
    "domains disable": "Allow requests",
    "proxies add": "Add",
    "proxies test": "Test",
    "proxies enable": "Enable",
    "proxies disable": "Disable",
    "proxies remove": "Remove",
    "webhooks add": "Add",
    "webhooks set": "Save",
    "webhooks enable": "Enable",
    "webhooks disable": "Disable",
    "webhooks retry": "Retry failed",
    "parsers rollout": "Roll out",
    "parsers rollback": "Roll back",
    "parsers backtest": "Compare",
    "keys create": "Create key",
    "keys revoke": "Revoke",
}

# what is elsewhere than its command suggests
ELSEWHERE: dict[str, str] = {
    "crawl": "“New crawl” (under “Jobs”)",
    "products track": "“Track a product” (under “Products”)",
    "products audit": "“Run now” (under “Audit”)",
    "tasks resume --all": "“Resume all” (under “Tasks”)",
    "tasks resume --domain": "“Resume tasks” (under “Domains”)",
}

# only typed: they run processes, or work on the machine itself
TYPED = frozenset({"parsers new", "parsers test", "analytics sync", "jobs prune"})

_COMMAND = re.compile(r"`forager ([^`]+)`|(?<=: )forager (.+)$")
_OPTION = re.compile(r"(?<![\w`-])--([a-z][a-z-]+)(?: \(`[a-z_]+`\))?")


def in_clicks(text: str) -> str:
    """The same text with what to click for commands, and the names of fields for options."""
    text = _COMMAND.sub(lambda found: _click(found[1] or found[2]), text)
    return _OPTION.sub(lambda found: f"“{found[1].replace('-', ' ').capitalize()}”", text)


def _click(command: str) -> str:
    words = command.split()
    names = [" ".join(words[:length]) for length in (3, 2, 1)]
    for name in names:
        if name in ELSEWHERE:
            return ELSEWHERE[name]
    if TYPED.intersection(names) or words[0] not in PAGES:
        return f"`forager {command}` on the server"
    page = f"“{PAGES[words[0]]}”"
    button = next((BUTTONS[name] for name in names if name in BUTTONS), None)
    return page if button is None else f"“{button}” (under {page})"
