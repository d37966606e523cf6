"""The pages of the menu, and hints as links to them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup, escape

from forager.access.caller import Scope
from forager.api.actions import forms_of, path_values
from forager.hints import Action, Hint, Option, as_command


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """`needs` is the scope without which the page shows nothing."""

    name: str
    path: str
    icon: str
    needs: Scope = Scope.READ

    def is_current(self, path: str) -> bool:
        if self.path == "/":
            return path == "/"
        return path == self.path or path.startswith(f"{self.path}/")


@dataclass(frozen=True, slots=True)
class MenuGroup:
    """Pages about one thing; the first group needs no name."""

    name: str
    entries: tuple[MenuEntry, ...]

    def seen_by(self, scope: Scope) -> list[MenuEntry]:
        return [entry for entry in self.entries if scope.includes(entry.needs)]


NAVIGATION: tuple[MenuGroup, ...] = (
    MenuGroup("", (MenuEntry("Overview", "/", "gauge"),)),
    MenuGroup(
        "Pages",
        (
            MenuEntry("Jobs", "/jobs", "list"),
            MenuEntry("Sources", "/sources", "book"),
            MenuEntry("Schedules", "/schedules", "calendar"),
            MenuEntry("Search", "/search", "search"),
            MenuEntry("Explain", "/explain", "question"),
            MenuEntry("Errors", "/errors", "alert"),
        ),
    ),
    MenuGroup(
        "Products",
        (
            MenuEntry("Products", "/products", "tag"),
            MenuEntry("Items", "/items", "layers"),
            MenuEntry("Price changes", "/prices", "trend"),
            MenuEntry("Alerts", "/alerts", "bell"),
            MenuEntry("Tasks", "/tasks", "clock"),
            MenuEntry("Parsers", "/parsers", "code"),
            MenuEntry("Audit", "/audit", "shield"),
            MenuEntry("Analytics", "/analytics", "chart", Scope.OPERATE),
        ),
    ),
    MenuGroup(
        "Hosts",
        (
            MenuEntry("Domains", "/domains", "globe", Scope.OPERATE),
            MenuEntry("Proxies", "/proxies", "shuffle", Scope.OPERATE),
        ),
    ),
    MenuGroup(
        "This system",
        (
            MenuEntry("Events", "/events", "pulse"),
            MenuEntry("Webhooks", "/webhooks", "hook", Scope.OPERATE),
            MenuEntry("Workers", "/workers", "cpu", Scope.OPERATE),
            MenuEntry("Doctor", "/doctor", "heart", Scope.ADMIN),
            MenuEntry("Keys", "/keys", "key", Scope.ADMIN),
            MenuEntry("Settings", "/settings", "sliders", Scope.ADMIN),
        ),
    ),
)

PATHS = {entry.name: entry.path for group in NAVIGATION for entry in group.entries}
PATHS["New crawl"] = "/new-crawl"
_CODE = re.compile(r"`([^`]+)`")
WITHOUT_DETAILS = ("Parsers", "Keys", "Audit", "Alerts", "New crawl")


def as_place(part: Action | Option) -> str:
    """The page and button of an action, or the label of an option, as text."""
    if isinstance(part, Option):
        return f"“{part.name.replace('_', ' ').capitalize()}”"
    forms = forms_of(part)
    if not forms.page:
        return f"{as_command(part)} on the server"
    return f"“{forms.page} › {forms.button}”" if forms.button else f"“{forms.page}”"


def as_link(part: Action | Option) -> Markup:
    """The same, with a link to the page."""
    if isinstance(part, Option) or not (page := forms_of(part).page):
        return _code(as_place(part))
    values = [] if page in WITHOUT_DETAILS else path_values(part)[:1]
    return Markup('<a href="{}">{}</a>').format(
        "/".join([PATHS[page], *values]), as_place(part).strip("“”")
    )


def linked(hint: str | Hint | None) -> Markup:
    """A hint with links to the pages that it names, and with its commands as code."""
    if not isinstance(hint, Hint):
        return _code(hint or "")
    return _code(hint.text).format(
        *(as_link(p) if isinstance(p, Action | Option) else linked(p) for p in hint.parts)
    )


def _code(text: str) -> Markup:
    """Escaped text, with what is between backticks as code."""
    code = Markup("<code>{}</code>")
    parts = _CODE.split(text)
    return Markup("").join(
        code.format(each) if i % 2 else escape(each) for i, each in enumerate(parts)
    )
