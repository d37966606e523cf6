"""Operations on events."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from forager.events.event import EventKind, EventRow
from forager.events.service import list_events
from forager.operations.models import (
    Listed,
    Moment,
    OnlyDomain,
    Paging,
    PlainText,
    ResponseModel,
    RowId,
    listed,
)
from forager.operations.operation import Context, Group

event_log = Group(
    "events", "Events of products, domains and sources, as sent to webhooks.", "Events"
)

Kind = Annotated[EventKind, Field(description="Only this kind.")]
SourceName = Annotated[
    PlainText, Field(min_length=1, max_length=300, description="Only events of this source.")
]
ProductId = Annotated[RowId, Field(description="Only events of this product.")]
Since = Annotated[Moment, Field(description="Only events from this time on; UTC without a zone.")]


class CatalogEvent(
    ResponseModel,
    row=EventRow,
    hidden=("domain_id", "source_id"),
    about={"payload": "Data of the event."},
    thing="event",
):
    """An event, with the values at the time it occurred."""

    kind: str = Field(description="Later versions may add kinds.", examples=list(EventKind)[:1])
    source: str | None = Field(
        validation_alias="source_id", description="Name of the source; null: of none."
    )


@event_log.operation(
    "list", "GET /events", flags={"product_id": "--product"}, none="No events match."
)
async def events(
    context: Context,
    paging: Paging,
    kind: Kind | None = None,
    domain: OnlyDomain | None = None,
    product_id: ProductId | None = None,
    source: SourceName | None = None,
    since: Since | None = None,
) -> Listed[CatalogEvent]:
    """List events of products, domains and sources, newest first."""
    page = await list_events(
        context.database,
        kind=kind,
        domain=domain,
        product_id=product_id,
        source_id=source,
        user_id=context.owner,
        since=since,
        **paging,
    )
    return listed(page, CatalogEvent.of)
