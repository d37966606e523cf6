"""What tasks add to the operations on domains: decisions about their pages, and alarms."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from forager.db.database import Database
from forager.fetch.domains import Domain as DomainRow
from forager.fetch.domains.operations import Domain, Host, domains
from forager.fetch.domains.service import Domains
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
from forager.operations.operation import Columns, Context, Scope
from forager.products.validation.learned_places import PriceTemplate, find_template
from forager.render.stats import RenderStats, ShapeStats
from forager.tasks.alarms import Decision, decide_alarm, describe_acceptance, list_alarms

__all__ = ["domains"]


_ABOUT_TEMPLATE = {
    "path": "Path of the element that shows the price.",
    "shown_wins": "Whether the price there wins over structured data, which states list prices.",
    "decided_at": "Since when this is used.",
    "checked_at": "When recent visits last confirmed it.",
}


class PricePlace(ResponseModel, row=PriceTemplate, about=_ABOUT_TEMPLATE):
    """Where the pages of a domain show their price."""


class RenderDecision(ResponseModel, row=ShapeStats, hidden=("streak", "skipped")):
    """Whether product pages of one URL shape need a browser, as learned from visits."""

    columns: ClassVar[Columns] = {
        "URLS…": "shape", "RENDERED": lambda each: "yes" if each.rendered else "no",
        "PAGES>": "pages", "SINCE": "updated_at",
    }  # fmt: skip

    shape: str = Field(description="URLs, with * for what differs.")
    rendered: bool = Field(description="Whether new pages of the shape are rendered at once.")
    pages: int = Field(description="Pages in a row that had a price only there, or not even there.")


class DomainDetail(Domain):
    """A domain, and what visits have decided about its product pages."""

    alarm: str | None = Field(description="Why its results are withheld; null: they are not.")
    price_template: PricePlace | None = Field(description="Where its pages show their price.")
    render_decisions: list[RenderDecision] = Field(
        description="URL shapes whose product pages were rendered, or tried in a browser."
    )


@domains.operation("show", "GET /domains/{host}")
async def show_domain(context: Context, host: Host) -> DomainDetail:
    """Show the domain settings of a host: its own, or those of its nearest parent domain."""
    found = await Domains(context.database).get(host)
    return await describe_domain(context.database, found)


async def describe_domain(database: Database, domain: DomainRow) -> DomainDetail:
    alarms = {each.domain_id: each.reason for each in await list_alarms(database)}
    known = (await RenderStats.load(database, domain.id)).known.values()
    return DomainDetail.of(
        domain,
        alarm=alarms.get(domain.id),
        price_template=await find_template(database, domain.id),
        render_decisions=[
            RenderDecision.of(each, rendered=each.streak > 0, pages=abs(each.streak))
            for each in known
            if each.streak
        ],
    )


class Alarm(ResponseModel):
    """A domain whose results are withheld because they look wrong."""

    domain: str
    reason: str = Field(description="Why the results look wrong: `gone`, `blocked` or `same_page`.")
    raised_at: Time = Field(description="When the alarm was raised.")


class AlarmOrder(RequestModel):
    """What to do with withheld results."""

    model_config = example(decision="accept")

    decision: Decision = Field(description="Accept or discard the withheld results.")


class ResolvedAlarm(ResponseModel):
    """How many tasks an alarm concerned."""

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
