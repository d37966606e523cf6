"""Crawls behind a login: pages that turn into login forms mean that the crawl is logged out.

Only crawls with headers that are secret (cookies, bearer tokens) are watched. A page that shows a
login form is looked at again after other pages: one alone is for other users, and excluded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from forager.crawl.frontier.entry import FrontierEntry, Via
from forager.crawl.options import CrawlOptions
from forager.crawl.settlement import Postponed, Visit
from forager.crawl.visit.outcomes import excluded
from forager.documents.page import PreviousPage
from forager.fetch.response import Response, is_public_header

# login forms in a row that need no second look
IN_A_ROW = 3
SECOND_LOOK = 5.0
UNAUTHORIZED = 401
LOGGED_OUT = "logged out"
# documentation has pages about authorization: only what leads to a login counts
_LOGIN_URL = re.compile(
    r"[/.?&_-](?:log[-_]?in|sign[-_]?in|sso|oauth2?/authorize|session/new)(?:[/.?&=#_-]|$)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class LoginWatch:
    """Notices that a crawl has been logged out. `message` says why, from then on."""

    is_on: bool
    message: str | None = None
    _pages: int = 0
    _in_a_row: int = 0
    # pages that wait for a second look, and how many others had been read at the first one
    _suspects: dict[bytes, int] = field(default_factory=dict)
    _excluded: int = 0

    @classmethod
    def of(cls, options: CrawlOptions) -> LoginWatch:
        """The watch of a crawl; it is on for crawls with secret headers."""
        has_secret = any(not is_public_header(name) for name in options.headers)
        return cls(is_on=has_secret and options.files is None)

    def is_sent_to_login(self, entry: FrontierEntry, response: Response) -> bool:
        """Whether the server asks for a login instead of sending the page."""
        if not self.is_on or _LOGIN_URL.search(entry.url):
            return False
        return response.status == UNAUTHORIZED or bool(
            response.redirect and _LOGIN_URL.search(response.redirect)
        )

    def is_login_form(self, entry: FrontierEntry, *, asks_password: bool) -> bool:
        """Whether a page that should not be one asks for a password."""
        return self.is_on and asks_password and not _LOGIN_URL.search(entry.url)

    def read_page(self, entry: FrontierEntry) -> None:
        """A page was read that is no login form."""
        self._suspects.pop(entry.key, None)
        self._pages += 1
        self._in_a_row = 0

    def suspect(self, entry: FrontierEntry, previous: PreviousPage | None) -> Visit:
        """What becomes of a URL that shows a login form. It stays in the frontier if in doubt."""
        is_second_look = entry.key in self._suspects
        seen_at = self._suspects.setdefault(entry.key, self._pages)
        self._in_a_row += 1
        is_start = entry.via is Via.SEED and not self._pages
        # at the second look: several were pages before, or no other page could be read meanwhile
        was_page = previous is not None and len(self._suspects) + self._excluded > 1
        is_lost = is_second_look and (was_page or seen_at == self._pages)
        if self._in_a_row >= IN_A_ROW or is_start or is_lost:
            self.message = f"{LOGGED_OUT}: {entry.url} shows a login form"
        elif is_second_look:
            del self._suspects[entry.key]
            self._excluded += 1
            message = "it shows a login form, although the crawl is logged in"
            return excluded(entry, "login", message)
        return Postponed(entry, SECOND_LOOK, "it shows a login form")
