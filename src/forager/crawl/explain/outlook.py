"""Whether a URL would be fetched now, check by check, without sending a request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from forager.crawl.frontier.seeding import scope_of
from forager.crawl.options import CrawlOptions
from forager.crawl.reports.report import CrawlWait
from forager.crawl.visit.rendering import domain_of
from forager.db.database import Database
from forager.errors import GiveUp
from forager.extract.hosts import host_name, host_of
from forager.extract.urls import NormalizedUrl
from forager.fetch.budgets.terms import DEFAULT_CONCURRENCY, default_delay
from forager.fetch.domains import Domain
from forager.fetch.guard import GuardPolicy
from forager.fetch.robots.gate import origin_of, select_robots
from forager.fetch.robots.rules import Robots


class CheckAnswer(StrEnum):
    """Whether a rule allows a URL to be fetched."""

    YES = "yes"
    LATER = "later"
    UNKNOWN = "unknown"
    NO = "no"


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """One check before a URL is fetched, and its result."""

    name: str
    answer: CheckAnswer
    message: str


@dataclass(frozen=True, slots=True)
class Outlook:
    """All checks, in the order of a crawl; the strictest result decides."""

    answer: CheckAnswer
    message: str
    checks: list[RuleCheck]
    # None: nothing is known of its host
    domain: str | None


async def outlook(
    database: Database, url: NormalizedUrl, *, agent: str, options: CrawlOptions | None
) -> Outlook:
    """`options` are those of the crawl that it is judged by; without one, what always counts."""
    if options is not None and options.files is not None:
        return _of_files(url, options)
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
    decisive = max(checks, key=lambda check: list(CheckAnswer).index(check.answer))
    return Outlook(
        decisive.answer, _outlook_message(decisive), checks, domain.domain_name if domain else None
    )


def _of_files(url: NormalizedUrl, options: CrawlOptions) -> Outlook:
    place = options.folder or f"{options.repository} ({options.ref or 'HEAD'})"
    checks = [RuleCheck("files", CheckAnswer.YES, f"read from {place}"), _scope(url, options)]
    decisive = max(checks, key=lambda check: list(CheckAnswer).index(check.answer))
    message = _outlook_message(decisive)
    if decisive.answer is CheckAnswer.YES:
        message = f"It would be read from {place}, if there is such a file."
    return Outlook(decisive.answer, message, checks, None)


def _outlook_message(check: RuleCheck) -> str:
    match check.answer:
        case CheckAnswer.YES:
            return "It would be fetched."
        case CheckAnswer.NO:
            return f"It would not be fetched: {check.message}."
        case CheckAnswer.LATER:
            return f"It would have to wait: {check.message}."
        case CheckAnswer.UNKNOWN:
            return f"It depends: {check.message}."


def _address(url: NormalizedUrl, options: CrawlOptions | None, domain: Domain | None) -> RuleCheck:
    private = (options.allow_private if options else False) or bool(domain and domain.allow_private)
    name = host_name(host_of(url))
    try:
        GuardPolicy(allow_private=private).check_unresolved(name)
    except GiveUp as error:
        return RuleCheck("address", CheckAnswer.NO, error.message)
    message = "private addresses are allowed" if private else f"{name} is not known to be private"
    return RuleCheck("address", CheckAnswer.YES, message)


def _scope(url: NormalizedUrl, options: CrawlOptions) -> RuleCheck:
    rule = scope_of(options).refusal(url)
    if rule is not None:
        return RuleCheck("scope", CheckAnswer.NO, rule.message)
    return RuleCheck("scope", CheckAnswer.YES, f"within the crawl's scope ({options.scope})")


async def _robots(
    database: Database, url: NormalizedUrl, agent: str, *, ignored: bool
) -> tuple[RuleCheck, float | None]:
    """The check of robots.txt, and the delay between requests that it asks for."""
    origin = origin_of(url)
    kept, now = await database.run(select_robots, origin)
    if ignored:
        return RuleCheck("robots", CheckAnswer.YES, "the crawl ignores robots.txt"), None
    if kept is None:
        message = f"{origin}/robots.txt is not known yet and would be asked for first"
        return RuleCheck("robots", CheckAnswer.UNKNOWN, message), None
    rules = kept.robots(now)
    if rules is None:
        return RuleCheck("robots", CheckAnswer.LATER, kept.policy(now).reason), None
    return _by_rules(rules, url, agent), rules.crawl_delay(agent)


def _by_rules(rules: Robots, url: NormalizedUrl, agent: str) -> RuleCheck:
    found = rules.verdict(url, agent)
    answer = CheckAnswer.YES if found.allowed else CheckAnswer.NO
    if found.line is None:
        return RuleCheck("robots", answer, "no robots.txt rule applies")
    return RuleCheck("robots", answer, f"line {found.line} of robots.txt: {found.rule}")


def _host(domain: Domain | None) -> RuleCheck:
    if domain is None:
        return RuleCheck(
            "host", CheckAnswer.YES, "no settings for its host, and no requests so far"
        )
    if not domain.is_active:
        return RuleCheck("host", CheckAnswer.NO, f"{domain.domain_name} is disabled")
    if domain.blocked_until is not None:
        seconds = (domain.blocked_until - datetime.now(UTC)).total_seconds()
        wait = CrawlWait(f"rate-limited by {domain.domain_name} (Retry-After)", seconds)
        return RuleCheck("host", CheckAnswer.LATER, wait.message)
    return RuleCheck("host", CheckAnswer.YES, f"{domain.domain_name} is not rate-limited")


def _budget(
    url: NormalizedUrl,
    domain: Domain | None,
    options: CrawlOptions | None,
    robots_delay: float | None,
) -> RuleCheck:
    set_delay = domain.crawl_delay_seconds if domain else None
    asked_delay = options.delay if options else None
    host = domain.domain_name if domain else host_of(url)
    delays = (set_delay, asked_delay, default_delay(host))
    delay = next(each for each in delays if each is not None)
    slow = domain.slow_delay if domain else 0.0
    allowed = (domain.max_concurrent_requests if domain else None) or (
        (options.concurrency if options else None) or DEFAULT_CONCURRENCY
    )
    traffic_delay = (domain.traffic_delay if domain else None) or 0.0
    delay = max(delay, traffic_delay, robots_delay or 0.0) + slow
    message = f"one request every {delay:.3g} s" if delay else "no delay between requests"
    if slow > 0:
        message += f", including {slow:.3g} s of slow-down"
    used = domain.connections if domain else 0
    return RuleCheck(
        "budget", CheckAnswer.YES, f"{message}; {used} of {allowed} connections are in use"
    )
