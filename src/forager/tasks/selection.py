"""A selection of tasks by id, state, domain, due time, hold or URL."""

from __future__ import annotations

from dataclasses import dataclass

from forager.errors import InvalidInput
from forager.hints import Hint, action
from forager.tasks.lifecycle import TaskStatus

MAX_IDS = 100_000


@dataclass(frozen=True, slots=True)
class Selection:
    """Tasks that match all given conditions; without conditions, all tasks.

    `domain` is a host, which selects the domain that applies to it. `url` is the whole URL; * in
    it stands for any characters.
    """

    ids: tuple[int, ...] = ()
    statuses: tuple[TaskStatus, ...] = ()
    domain: str | None = None
    url: str | None = None
    due: bool = False
    on_hold: bool | None = None
    # those that gave up, and those whose last visit failed with all its retries
    failing: bool = False

    def __post_init__(self) -> None:
        if len(self.ids) > MAX_IDS:
            raise InvalidInput(f"more than {MAX_IDS:,} ids", hint="Select by domain or URL.")
        if any(not 0 < number < 2**63 for number in self.ids):
            raise InvalidInput(
                "an id is a number from 1", hint=Hint("{} lists tasks.", action("tasks list"))
            )
        if self.url is not None and "\0" in self.url:
            raise InvalidInput("a URL holds no NUL character")

    @property
    def is_everything(self) -> bool:
        return self == Selection()

    @property
    def is_domain_alone(self) -> bool:
        return self.domain is not None and self == Selection(domain=self.domain)

    def like(self) -> str | None:
        """The pattern of a URL with a wildcard; None if `url` is an exact URL."""
        if self.url is None or "*" not in self.url:
            return None
        escaped = self.url.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return escaped.replace("*", "%")
