"""Operations on the alarms of domains, which belong to the group of the domains."""

from __future__ import annotations

from pydantic import Field

from forager.fetch.domains.operations import Host, domains
from forager.operations.models import (
    Limit,
    Listed,
    Offset,
    RequestModel,
    ResponseModel,
    Time,
    cut,
    example,
    listed,
)
from forager.operations.operation import Context, Scope
from forager.tasks.alarms import Decision, decide_alarm, describe_acceptance, list_alarms

__all__ = ["domains"]


class Alarm(ResponseModel):
    """A domain whose results are withheld because they look wrong."""

    domain: str
    reason: str = Field(description="Why the results look wrong: `gone`, `blocked` or `same_page`.")
    raised_at: Time = Field(description="When the alarm was raised.")


class AlarmOrder(RequestModel):
    model_config = example(decision="accept")

    decision: Decision = Field(description="Accept or discard the withheld results.")


class ResolvedAlarm(ResponseModel):
    tasks: int = Field(description="Number of tasks concerned.")


@domains.operation(
    "alarms",
    "GET /domain-alarms",
    columns={"DOMAIN": "domain", "REASON": "reason", "RAISED": "raised_at"},
    none="No domain has an alarm.",
)
async def list_domain_alarms(
    context: Context, limit: Limit = 100, cursor: Offset = 0
) -> Listed[Alarm]:
    """List domains whose results are withheld because they look wrong."""
    return listed(cut(await list_alarms(context.database), cursor, limit), Alarm.of)


async def _preview(context: Context, host: str, **_: object) -> str:
    return await describe_acceptance(context.database, host)


@domains.operation(
    "resolve",
    "POST /domains/{host}/alarm",
    scope=Scope.OPERATE,
    arguments=("decision",),
    confirm=lambda given: given.get("decision") == Decision.ACCEPT,
    preview=_preview,
    done="{tasks} tasks resolved",
    button="Accept results",
)
async def resolve_alarm(context: Context, host: Host, order: AlarmOrder) -> ResolvedAlarm:
    """Accept or discard the withheld results of a domain, which ends its alarm."""
    return ResolvedAlarm(tasks=await decide_alarm(context.database, host, order.decision))
