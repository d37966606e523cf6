"""Whether readers find a page, since when, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from forager.db.database import Connection
from forager.documents.generation import Generation, State
from forager.documents.page import PublishedPage
from forager.documents.publication import publish_hint
from forager.documents.store import generations, reads
from forager.hints import Hint


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVisibility:
    """The publication state of a page; None if no generation lists it."""

    state: State | None
    message: str
    source: str | None = None
    generation: int | None = None
    since: datetime | None = None
    # a newer version that readers do not see because its generation is held back
    held_back: int | None = None
    held_back_note: str | None = None

    @property
    def hint(self) -> Hint | None:
        """How to publish the generation that is held back."""
        if self.held_back is None or self.source is None:
            return None
        return publish_hint(self.source)


async def page_visibility(
    connection: Connection,
    key: bytes,
    *,
    source_id: str | None,
    job_id: UUID | None,
    user_id: UUID | None,
    otherwise: str,
) -> PageVisibility:
    """The state of a page in its source, by the generation of a job and the published one.

    `otherwise` says why a page is not published that no generation lists.
    """
    shown = await reads.select_published_page(connection, key, source_id, user_id)
    if job_id is None:
        built = await generations.select_held_back_with(connection, key, source_id, user_id)
    else:
        built = (await generations.select_generations_of_jobs(connection, [job_id])).get(job_id)
    lists = built is not None and await reads.generation_lists(connection, built.id, key)
    if shown is not None:
        return _published(shown, built if lists else None)
    if built is None or not (lists or built.state is State.BUILDING):
        return PageVisibility(state=None, message=f"not published: {otherwise}", source=source_id)
    return PageVisibility(
        state=built.state,
        message=_MESSAGES[built.state].format(number=built.number, note=built.note),
        source=built.source_id,
        generation=built.number,
        held_back=built.number if built.is_held_back else None,
        held_back_note=built.note if built.is_held_back else None,
    )


_MESSAGES = {
    State.BUILDING: "not published yet: generation {number} is being built",
    State.HELD_BACK: "not published: generation {number} is held back: {note}",
    State.SUPERSEDED: "removed: generation {number} had it, and the published one does not",
    # published or deleted since the first statement
    State.PUBLISHED: "published",
    State.ABANDONED: "not published: generation {number} is being deleted",
}


def _published(shown: PublishedPage, built: Generation | None) -> PageVisibility:
    message = f"published in generation {shown.generation}"
    if shown.carried_reason is not None:
        message += (
            f", carried over from an earlier one because fetching fails ({shown.carried_reason})"
        )
    held_back = built if built is not None and built.is_held_back else None
    if held_back is not None:
        message += f"; the version in generation {held_back.number} is held back: {held_back.note}"
    elif built is not None and built.state is State.BUILDING:
        message += f"; generation {built.number} is being built"
    return PageVisibility(
        state=State.PUBLISHED,
        message=message,
        source=shown.source_id,
        generation=shown.generation,
        since=shown.since,
        held_back=None if held_back is None else held_back.number,
        held_back_note=None if held_back is None else held_back.note,
    )
