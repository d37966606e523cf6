"""SQL of success rates: how many pages of a domain each version of a parser could read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import LiteralString

from forager.db.database import Connection
from forager.db.retention import OldRows
from forager.db.rows import RowArrays, Rows, Tuples, Values
from forager.parsers.pattern import VersionRate

# the first of two keys; the second is the domain
_ALERT_LOCK = 0x50415253


@dataclass(frozen=True, slots=True)
class ParseCount:
    """Pages of one domain that one parser version has read."""

    domain_id: int
    parser: str
    version: str
    role: str
    pages: int
    good: int


@dataclass(frozen=True, slots=True)
class DomainRate:
    """Results of the newest pages of a domain, and of the week before them."""

    domain_id: int
    domain: str
    recent_pages: int
    recent_good: int
    earlier_pages: int
    earlier_good: int


@dataclass(frozen=True, slots=True)
class ParserRate:
    """The results of a version for all domains."""

    parser: str
    version: str
    recent_pages: int
    recent_good: int
    week_pages: int
    week_good: int


_TODAY: LiteralString = "(now() AT TIME ZONE 'UTC')::date"
_FIRST_DAY: LiteralString = f"{_TODAY} - 6"
_COUNTS = RowArrays(
    "c", domain_id="bigint", parser="text", version="text", role="text", pages="int", good="int"
)


async def add_counts(connection: Connection, counts: Sequence[ParseCount]) -> None:
    """Add to the counts of today."""
    # in one order, so that two workers cannot deadlock
    await connection.execute(
        f"""
        INSERT INTO parse_rates AS r (domain_id, parser, parser_version, role, day, pages, good)
        SELECT c.domain_id, c.parser, c.version, c.role, {_TODAY}, sum(c.pages), sum(c.good)
          FROM {_COUNTS}
         GROUP BY c.domain_id, c.parser, c.version, c.role
         ORDER BY c.domain_id, c.parser, c.version, c.role
            ON CONFLICT (domain_id, parser, parser_version, role, day) DO UPDATE
           SET pages = r.pages + excluded.pages, good = r.good + excluded.good
        """,
        _COUNTS.values(counts),
    )


async def select_domain_rates(
    connection: Connection, domain_ids: Sequence[int], *, recent: int, good: Sequence[str]
) -> list[DomainRate]:
    """Results of active versions for the newest pages, and for the rest of the week."""
    return await Rows(connection, DomainRate).all(
        f"""
        SELECT d.id AS domain_id, d.domain_name AS domain,
               n.pages AS recent_pages, n.good AS recent_good,
               greatest(w.pages - n.week_pages, 0) AS earlier_pages,
               greatest(w.good - n.week_good, 0) AS earlier_good
          FROM domains d
         CROSS JOIN LATERAL (
               SELECT count(*)::int AS pages,
                      count(*) FILTER (WHERE x.good)::int AS good,
                      count(*) FILTER (WHERE x.this_week)::int AS week_pages,
                      count(*) FILTER (WHERE x.good AND x.this_week)::int AS week_good
                 FROM (
                      SELECT e.outcome = ANY(%(good)s) AS good,
                             (e.created_at AT TIME ZONE 'UTC')::date >= {_FIRST_DAY} AS this_week
                        FROM extractions e
                       WHERE e.domain_id = d.id AND e.role = 'active'
                       ORDER BY e.id DESC
                       LIMIT %(recent)s
                      ) AS x
               ) AS n
         CROSS JOIN LATERAL (
               SELECT coalesce(sum(r.pages), 0)::int AS pages,
                      coalesce(sum(r.good), 0)::int AS good
                 FROM parse_rates r
                WHERE r.domain_id = d.id AND r.role = 'active' AND r.day >= {_FIRST_DAY}
               ) AS w
         WHERE d.id = ANY(%(domain_ids)s)
         ORDER BY d.id
        """,
        {"domain_ids": list(domain_ids), "recent": recent, "good": list(good)},
    )


async def hold_alert(connection: Connection, domain_id: int) -> bool:
    """Keep other transactions from raising an alert for the domain until this one ends."""
    return await Values(connection, bool).one(
        "SELECT pg_try_advisory_xact_lock(%s, hashint8(%s))", (_ALERT_LOCK, domain_id)
    )


async def has_event_since(
    connection: Connection, kind: str, domain_id: int, age: timedelta
) -> bool:
    """Whether a domain had an event of this kind within this time."""
    return await Tuples(connection).exists(
        """
        SELECT FROM catalog_events
         WHERE kind = %s AND domain_id = %s AND occurred_at > now() - %s
         LIMIT 1
        """,
        (kind, domain_id, age),
    )


async def select_alerted(connection: Connection, kind: str) -> list[int]:
    """Domains with an event of this kind within a week."""
    return await Values(connection).all(
        """
        SELECT DISTINCT domain_id FROM catalog_events
         WHERE kind = %s AND occurred_at > now() - interval '7 days' AND domain_id IS NOT NULL
        """,
        (kind,),
    )


async def select_version_rates(
    connection: Connection,
    *,
    domain_ids: Sequence[int] | None,
    after: tuple[str, str, str, str] | None,
    limit: int,
    recent: int,
    good: Sequence[str],
) -> list[VersionRate]:
    """Versions that read pages in the last seven days, by domain."""
    return await Rows(connection, VersionRate).all(
        f"""
        WITH week AS MATERIALIZED (
            SELECT d.id, d.domain_name AS domain, r.parser, r.parser_version AS version, r.role,
                   sum(r.pages)::int AS week_pages, sum(r.good)::int AS week_good
              FROM parse_rates r
              JOIN domains d ON d.id = r.domain_id
             WHERE r.day >= {_FIRST_DAY}
               AND (%(domain_ids)s::bigint[] IS NULL OR d.id = ANY(%(domain_ids)s))
               AND (d.domain_name, r.parser, r.parser_version, r.role)
                   > (%(a)s::text, %(b)s::text, %(c)s::text, %(d)s::text)
             GROUP BY d.id, r.parser, r.parser_version, r.role
             ORDER BY d.domain_name, r.parser, r.parser_version, r.role
             LIMIT %(limit)s
        )
        SELECT w.domain, w.parser, w.version, w.role,
               n.pages AS recent_pages, n.good AS recent_good, w.week_pages, w.week_good
          FROM week w
         CROSS JOIN LATERAL (
               SELECT count(*)::int AS pages,
                      count(*) FILTER (WHERE x.outcome = ANY(%(good)s))::int AS good
                 FROM (
                      SELECT e.parser, e.parser_version, e.outcome
                        FROM extractions e
                       WHERE e.domain_id = w.id AND e.role = w.role
                       ORDER BY e.id DESC
                       LIMIT %(recent)s
                      ) AS x
                WHERE x.parser = w.parser AND x.parser_version = w.version
               ) AS n
         ORDER BY w.domain, w.parser, w.version, w.role
        """,
        {
            "domain_ids": None if domain_ids is None else list(domain_ids),
            **dict(zip("abcd", after or ("", "", "", ""), strict=True)),
            "limit": limit,
            "recent": recent,
            "good": list(good),
        },
    )


async def select_parser_rates(
    connection: Connection, versions: Sequence[tuple[str, str]], *, recent: int, good: Sequence[str]
) -> list[ParserRate]:
    """How many pages each version read, and how many of them well, lately and in this week."""
    return await Rows(connection, ParserRate).all(
        f"""
        SELECT v.parser, v.version, n.pages AS recent_pages, n.good AS recent_good,
               w.pages AS week_pages, w.good AS week_good
          FROM unnest(%(parsers)s::text[], %(versions)s::text[]) AS v (parser, version)
         CROSS JOIN LATERAL (
               SELECT count(*)::int AS pages,
                      count(*) FILTER (WHERE x.outcome = ANY(%(good)s))::int AS good
                 FROM (
                      SELECT e.outcome
                        FROM extractions e
                       WHERE e.parser = v.parser AND e.parser_version = v.version
                       ORDER BY e.id DESC
                       LIMIT %(recent)s
                      ) AS x
               ) AS n
         CROSS JOIN LATERAL (
               SELECT coalesce(sum(r.pages), 0)::int AS pages,
                      coalesce(sum(r.good), 0)::int AS good
                 FROM parse_rates r
                WHERE r.parser = v.parser AND r.parser_version = v.version
                  AND r.day >= {_FIRST_DAY}
               ) AS w
        """,
        {
            "parsers": [parser for parser, _ in versions],
            "versions": [version for _, version in versions],
            "recent": recent,
            "good": list(good),
        },
    )


OLD_RATES = OldRows("parse_rates", f"t.day < {_TODAY} - ceil(%(days)s::float8)::int", key="ctid")
