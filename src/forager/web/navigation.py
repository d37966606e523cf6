"""The pages that the menu leads to, in its order."""

from __future__ import annotations

from dataclasses import dataclass

from forager.access.scope import Scope


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


NAVIGATION: tuple[Entry, ...] = (
    Entry("Overview", "/", "gauge"),
    Entry("Jobs", "/jobs", "list"),
    Entry("Sources", "/sources", "book"),
    Entry("Search", "/search", "search"),
    Entry("Products", "/products", "tag"),
    Entry("Tasks", "/tasks", "clock"),
    Entry("Errors", "/errors", "alert"),
    Entry("Domains", "/domains", "globe", Scope.OPERATE),
    Entry("Proxies", "/proxies", "shuffle", Scope.OPERATE),
    Entry("Parsers", "/parsers", "code"),
    Entry("Webhooks", "/webhooks", "bell", Scope.OPERATE),
    Entry("Workers", "/workers", "cpu", Scope.OPERATE),
    Entry("Keys", "/keys", "key", Scope.ADMIN),
)
