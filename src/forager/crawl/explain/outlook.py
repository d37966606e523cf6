"""Whether a URL would be fetched now, check by check, without sending a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from forager.crawl.frontier.seeding import scope_of
from forager.crawl.options import CrawlOptions
from forager.crawl.rendering import domain_of
from forager.crawl.report import CrawlWait
from forager.db.database import Database
from forager.errors import GiveUp
from forager.extract.hosts import host_name, host_of
from forager.extract.urls import NormalisedUrl
from forager.fetch.budgets.budget import DEFAULT_CONCURRENCY, default_delay
from forager.fetch.domains import Domain
from forager.fetch.guard import GuardPolicy
from forager.fetch.robots import store as robots_store
from forager.fetch.robots.gate import origin_of
from forager.fetch.robots.rules import Robots


class Answer(StrEnum):
    YES = "yes"
    LATER = "later"
    UNKNOWN = "unknown"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Check:
    """One check before a URL is fetched, and its result."""

    name: str
    answer: Answer
    words: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """All checks, in the order of a crawl; the strictest result decides."""

    answer: Answer
    words: str
    checks: list[Check]
    # None: nothing is known of its host
    domain: str | None


async def outlook(
    database: Database, url: NormalisedUrl, *, agent: str, options: CrawlOptions | None
) -> Outlook:
    """`options` are those of the crawl that it is judged by; without one, what always counts."""
    is_ignored = options is not None and options.ignore_robots
    robots, robots_delay = await _robots(database, url, agent, ignored=is_ignored)
    domain = await domain_of(database, url)
    checks = [
        _address(url, options, domain),
        *([] if options is None else [_scope(url, options)]),
        robots,
        _host(domain),
        _budget(url, domain, options, robots_delay),
    ]
    decisive = max(checks, key=lambda check: list(Answer).index(check.answer))
    return Outlook(
        decisive.answer, _in_words(decisive), checks, domain.domain_name if domain else None
    )


def _in_words(check: Check) -> str:
    match check.answer:
        case Answer.YES:
            return "It would be fetched."
        case Answer.NO:
            return f"It would not be fetched: {check.words}."
        case Answer.LATER:
            return f"It would have to wait: {check.words}."
        case Answer.UNKNOWN:
            return f"It depends: {check.words}."


def _address(url: NormalisedUrl, options: CrawlOptions | None, domain: Domain | None) -> Check:
    private = (options.allow_private if options else False) or bool(domain and domain.allow_private)
    name = host_name(host_of(url))
    try:
        GuardPolicy(allow_private=private).check_unresolved(name)
    except GiveUp as error:
        return Check("address", Answer.NO, error.message)
    words = "private addresses are allowed" if private else f"{name} is not known to be private"
    return Check("address", Answer.YES, words)


def _scope(url: NormalisedUrl, options: CrawlOptions) -> Check:
    rule = scope_of(options).refusal(url)
    if rule is not None:
        return Check("scope", Answer.NO, rule.words)
    return Check("scope", Answer.YES, f"within the crawl's scope ({options.scope})")


async def _robots(
    database: Database, url: NormalisedUrl, agent: str, *, ignored: bool
) -> tuple[Check, float | None]:
    """The check of robots.txt, and the delay between requests that it asks for."""
    origin = origin_of(url)
    kept, now = await database.run(robots_store.select_robots, origin)
    if ignored:
        return Check("robots", Answer.YES, "the crawl ignores robots.txt"), None
    if kept is None:
        words = f"{origin}/robots.txt is not known yet and would be asked for first"
        return Check("robots", Answer.UNKNOWN, words), None
    rules = kept.robots(now)
    if rules is None:
        return Check("robots", Answer.LATER, kept.policy(now).reason), None
    return _by_rules(rules, url, agent), rules.crawl_delay(agent)


def _by_rules(rules: Robots, url: NormalisedUrl, agent: str) -> Check:
    found = rules.verdict(url, agent)
    answer = Answer.YES if found.allowed else Answer.NO
    if found.line is None:
        return Check("robots", answer, "no robots.txt rule applies")
    return Check("robots", answer, f"line {found.line} of robots.txt: {found.rule}")


def _host(domain: Domain | None) -> Check:
    if domain is None:
        return Check("host", Answer.YES, "no settings for its host, and no requests so far")
    if not domain.is_active:
        return Check("host", Answer.NO, f"{domain.domain_name} is disabled")
    if domain.blocked_until is not None:
        seconds = (domain.blocked_until - datetime.now(UTC)).total_seconds()
        wait = CrawlWait(f"rate-limited by {domain.domain_name} (Retry-After)", seconds)
        return Check("host", Answer.LATER, wait.words)
    return Check("host", Answer.YES, f"{domain.domain_name} is not rate-limited")


def _budget(
    url: NormalisedUrl,
    domain: Domain | None,
    options: CrawlOptions | None,
    robots_delay: float | None,
) -> Check:
    set_delay = domain.crawl_delay_seconds if domain else None
    asked_delay = options.delay if options else None
    host = domain.domain_name if domain else host_of(url)
    delays = (set_delay, asked_delay, default_delay(host))
    delay = next(each for each in delays if each is not None)
    slow = domain.slow_delay if domain else 0.0
    allowed = (domain.max_concurrent_requests if domain else None) or (
        (options.concurrency if options else None) or DEFAULT_CONCURRENCY
    )
    delay = max(delay, robots_delay or 0.0) + slow
    words = f"one request every {delay:.3g} s" if delay else "no delay between requests"
    if slow > 0:
        words += f", including {slow:.3g} s of slow-down"
    used = domain.connections if domain else 0
    return Check("budget", Answer.YES, f"{words}; {used} of {allowed} connections are in use")
