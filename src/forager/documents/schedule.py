"""When a source is refreshed: every so many seconds, or by a cron expression (in UTC)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from forager.amounts import parse_duration
from forager.errors import InvalidInput

SHORTEST = 60
LONGEST = 10 * 366 * 86400


@dataclass(frozen=True, slots=True)
class Schedule:
    """One of the two; neither means never."""

    every: int | None = None
    cron: str | None = None

    def after(self, moment: datetime) -> datetime | None:
        """The next time. Times that were missed are not made up for."""
        if self.every is not None:
            return moment + timedelta(seconds=self.every)
        if self.cron is not None:
            return next(CronSim(self.cron, moment.astimezone(UTC)), None)
        return None


def parse_every(text: str) -> Schedule:
    """Parse an interval such as 1d, 12h or 30min."""
    seconds = int(parse_duration(text).total_seconds())
    if not SHORTEST <= seconds <= LONGEST:
        raise InvalidInput("a refresh interval must be from 1min to 10 years")
    return Schedule(every=seconds)


def parse_cron(text: str) -> Schedule:
    """A schedule in five fields: minute, hour, day of month, month, day of week."""
    expression = " ".join(text.split())
    hint = "Five fields, for example '30 4 * * 1-5'; times are in UTC."
    if expression.count(" ") != 4 or len(expression) > 200:
        raise InvalidInput(f"{text!r} is not a cron expression", hint=hint)
    try:
        first = next(CronSim(expression, datetime.now(UTC)), None)
    except CronSimError as error:
        raise InvalidInput(f"{text!r} is not a cron expression: {error}", hint=hint) from None
    if first is None:
        raise InvalidInput(f"{text!r} never comes", hint=hint)
    return Schedule(cron=expression)
