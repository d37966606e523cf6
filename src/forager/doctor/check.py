"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from forager.errors import ForagerError


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """A check and its finding; for a problem also why it matters and what to do."""

    name: str
    level: Level
    finding: str
    advice: str | None = None
    why: str | None = None


def ok(name: str, finding: str) -> Check:
    return Check(name, Level.OK, finding)


def warn(name: str, finding: str, advice: str) -> Check:
    return Check(name, Level.WARN, finding, advice, REASONS[name])


def fail(name: str, finding: str, advice: str | None = None) -> Check:
    return Check(name, Level.FAIL, finding, advice, REASONS[name])


def failed_with(name: str, error: ForagerError) -> Check:
    """An error as a finding."""
    return fail(name, error.message, None if error.hint is None else str(error.hint))


REASONS = {
    "settings": "An invalid setting does not have the intended effect.",
    "python": "An older Python cannot run this code.",
    "versions": "Workers of different versions write different things.",
    "home": "The embedded database, the archive and the key of secrets live there.",
    "permissions": "Pages, prices and stored secrets must be readable by their owner only.",
    "space": "A full disk stops every commit; no data is lost, but all work stops.",
    "open files": "Every connection is an open file: requests would fail at random.",
    "memory": "A machine without memory kills runners, and each kill costs a retry.",
    "browser": "Pages that need JavaScript are stored without their content.",
    "storage": "A page is committed only after its response is in the archive.",
    "archive space": "A full disk stops every commit; no data is lost, but all work stops.",
    "server": "All state is kept in this database.",
    "database": "All state is kept in this database.",
    "connection": "All state is kept in this database.",
    "pool": "A statement that never ends occupies one of the few sessions of the pool.",
    "schema": "Workers with another schema version claim no work.",
    "clock": "Decisions use the database's clock, but logs and pages use this one.",
    "wake-ups": "Without them, work starts at the next poll, up to a second later.",
    "connections": "When none is left, workers and API are refused and wait.",
    "vacuum": "Dead rows slow down every claim and every commit.",
    "transactions": "Rows that an open transaction may see cannot be vacuumed, in any table.",
    "workers": "Without a worker nothing is fetched.",
    "services": "A failing or stuck service does not do its work: scheduling, delivery, clean-up.",
    "stale jobs": "They wait until another worker takes them over.",
    "stuck jobs": "A job that commits nothing holds its place and its source.",
    "waiting jobs": "They were requested, and no worker runs them.",
    "tasks": "Products become stale: their prices may be outdated.",
    "regions": "Workers of other regions do not process this work.",
    "rendering": "Pages that need a browser are not visited.",
    "search": "Without the configured search engine, PostgreSQL answers searches, more slowly.",
    "clickhouse": "Queries are answered from the data on the server, without newer rows.",
    "domain alarms": "Results of a domain that suddenly answers with wrong pages are withheld.",
    "bypassed parsers": "Pages of a parser that keeps breaking are read generically.",
    "success rates": "Fewer pages of a domain give good products; its shop may have changed.",
    "dead letters": "They are retried only by hand.",
    "broker": "Workers get no tasks through it; the tasks wait in PostgreSQL.",
    "proxies": "Fewer proxies mean fewer requests, and more load on the others.",
    "webhooks": "Messages wait, and are given up after three days.",
    "parsers": "Pages of that shop are parsed generically, or not at all.",
    "archive": "Missing responses can be neither replayed nor exported.",
    "keys": "An unused key is an unnecessary risk.",
    "exposure": "Keys and pages cross the network unencrypted.",
    "traces": "Traces are configured, but not sent.",
    "job": "If a small job does not run, no other job will.",
}
