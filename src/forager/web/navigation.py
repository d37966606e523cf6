"""The pages that the menu leads to, in its order."""

from __future__ import annotations

from dataclasses import dataclass

from forager.access.caller import Scope


@dataclass(frozen=True, slots=True)
class Entry:
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
class Group:
    """Pages about one thing; the first group needs no name."""

    name: str
    entries: tuple[Entry, ...]

    def seen_by(self, scope: Scope) -> list[Entry]:
        return [entry for entry in self.entries if scope.includes(entry.needs)]


NAVIGATION: tuple[Group, ...] = (
    Group("", (Entry("Overview", "/", "gauge"),)),
    Group(
        "Pages",
        (
            Entry("Jobs", "/jobs", "list"),
            Entry("Sources", "/sources", "book"),
            Entry("Search", "/search", "search"),
            Entry("Explain", "/explain", "question"),
        ),
    ),
    Group(
        "Products",
        (
            Entry("Products", "/products", "tag"),
            Entry("Tasks", "/tasks", "clock"),
            Entry("Errors", "/errors", "alert"),
            Entry("Parsers", "/parsers", "code"),
            Entry("Audit", "/audit", "shield"),
            Entry("Analytics", "/analytics", "pulse", Scope.OPERATE),
        ),
    ),
    Group(
        "Hosts",
        (
            Entry("Domains", "/domains", "globe", Scope.OPERATE),
            Entry("Proxies", "/proxies", "shuffle", Scope.OPERATE),
        ),
    ),
    Group(
        "This system",
        (
            Entry("Events", "/events", "pulse"),
            Entry("Webhooks", "/webhooks", "bell", Scope.OPERATE),
            Entry("Workers", "/workers", "cpu", Scope.OPERATE),
            Entry("Keys", "/keys", "key", Scope.ADMIN),
        ),
    ),
)
