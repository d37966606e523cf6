"""The delays that robots.txt files ask for, as far as they are known without asking anybody."""

from __future__ import annotations

from collections.abc import Collection

from forager.clock import local_time
from forager.db.database import Connection
from forager.extract.hosts import host_of, parent_domains
from forager.fetch.robots.rules import parse_robots
from forager.services.isolation import isolated
from forager.tasks.store import scheduling as store

LOOK_EVERY = 15.0
# files are dated before they are committed
OVERLAP = 60.0


class RobotsDelays:
    """Remembers what the files in the database say, and looks for new ones now and then."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._delays: dict[str, float] = {}
        self._looked_at: float | None = None

    async def refresh(self, connection: Connection) -> None:
        now = local_time()
        since = None if self._looked_at is None else now - self._looked_at
        if since is not None and since < LOOK_EVERY:
            return
        within = None if since is None else since + OVERLAP
        for origin, body in await store.select_delaying_robots(connection, within):
            with isolated(f"robots.txt of {origin}"):
                self._learn(host_of(origin), body)
        self._looked_at = now

    def _learn(self, host: str, body: bytes) -> None:
        delay = parse_robots(body).crawl_delay(self._agent) if body else None
        if delay:
            self._delays[host] = delay
        else:
            self._delays.pop(host, None)

    def by_domain(self, names: Collection[str]) -> dict[str, float]:
        """Of all hosts that a domain covers, the one that asks for most is obeyed."""
        longest: dict[str, float] = {}
        for host, delay in self._delays.items():
            name = next((n for n in (host, *parent_domains(host)) if n in names), None)
            if name is not None:
                longest[name] = max(delay, longest.get(name, 0.0))
        return longest
