"""The switch of a host, which belongs to the group of the domains."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from forager.access.caller import caller_of
from forager.crawl import traffic as service
from forager.crawl.traffic import Traffic
from forager.fetch.domains.operations import Domain, Host
from forager.operations.models import RequestModel, ResponseModel, example
from forager.operations.operation import Context, Scope
from forager.tasks.operations.domains import domains

__all__ = ["domains"]


class TrafficOrder(RequestModel):
    """What to do with all traffic to a host."""

    model_config = example(traffic="pause")

    traffic: Annotated[
        Traffic,
        Field(
            description="`slow`: at least 10 s between requests. `pause`: its crawls and tasks"
            " wait. `stop`: tasks in progress are withdrawn as well. `resume`: undoes them."
        ),
    ]


class TrafficChange(ResponseModel):
    """A domain after its traffic was changed."""

    domain: Domain = Field(description="The domain.")
    jobs: int = Field(description="Number of crawls that were paused or resumed.")
    refused: int = Field(description="Number of crawls that could not be.")


@domains.operation(
    "traffic",
    "POST /domains/{host}/traffic",
    scope=Scope.OPERATE,
    arguments=("traffic",),
    done="{jobs} crawls changed",
    button="Pause",
)
async def set_traffic(context: Context, host: Host, order: TrafficOrder) -> TrafficChange:
    """Slow down, pause, stop or resume everything at a host: crawls that began there, and tasks."""
    changed = await service.set_traffic(
        context.database, context.settings, caller_of(context), host, order.traffic
    )
    return TrafficChange.of(changed, domain=Domain.of(changed.domain))
