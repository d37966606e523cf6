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
    """What was looked at and found; if it is not well, why that matters and what to do next."""

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
    """What an error says, as a finding."""
    return fail(name, error.message, None if error.hint is None else str(error.hint))


REASONS = {
    "settings": "A setting that cannot be used is not the one that you meant.",
    "python": "An older Python cannot run this code.",
    "versions": "Workers of different versions write different things.",
    "home": "The embedded database, the archive and the key of secrets live there.",
    "permissions": "Pages, prices and stored secrets are for their owner alone.",
    "space": "A full disk stops every commit; nothing is lost, and nothing goes on.",
    "open files": "Every connection is an open file: requests would fail at random.",
    "memory": "A machine without memory kills runners, and each kill costs a retry.",
    "storage": "A page is committed only after its response is in the archive.",
    "archive space": "A full disk stops every commit; nothing is lost, and nothing goes on.",
    "server": "Everything that is promised is kept in this database.",
    "database": "Everything that is promised is kept in this database.",
    "connection": "Everything that is promised is kept in this database.",
    "pool": "A statement that waits without end keeps one of the few sessions of the pool.",
    "schema": "Workers of another schema take no work.",
    "clock": "Decisions use the database's clock, but logs and pages use this one.",
    "wake-ups": "Without them work starts at the next look, up to a second later.",
    "connections": "When none is left, workers and API are refused and wait.",
    "vacuum": "Dead rows slow down every claim and every commit.",
    "transactions": "What a transaction may still see cannot be cleaned up, in any table.",
    "workers": "Without a worker nothing is fetched.",
    "services": "A service that fails does not do its work: scheduling, delivery, clean-up.",
    "stale jobs": "They wait until somebody takes them from the dead.",
    "stuck jobs": "A job that commits nothing holds its place and its source.",
    "waiting jobs": "Somebody has asked for them and gets nothing.",
    "tasks": "Products grow old: prices shown are not those of today.",
    "regions": "What is tied to a region is left alone by all other workers.",
    "search": "You asked for a search engine; without it PostgreSQL answers, with more effort.",
    "clickhouse": "Questions are answered from what the server has, and not from what is newer.",
    "dead letters": "They are not tried again unless a person says so.",
    "broker": "Workers that hear of tasks through it hear nothing; all of them wait in PostgreSQL.",
    "proxies": "Fewer proxies mean fewer requests, and the rest are used more.",
    "webhooks": "Messages wait, and are given up after three days.",
    "parsers": "Pages of that shop are read by another parser, or not at all.",
    "archive": "What is missing can be neither replayed nor exported.",
    "keys": "A key that nobody needs is a door that nobody watches.",
    "exposure": "Keys and pages cross the network as they are.",
    "traces": "You asked for traces, and get none.",
    "job": "If a small job does not run, no other will.",
}
