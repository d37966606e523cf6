"""Publishing and rolling back: readers see the whole old generation, or the whole new one."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from forager.db.database import Connection, Database
from forager.documents.generation import Generation, Source, State
from forager.documents.page import PageCounts
from forager.documents.publication_events import record_publication
from forager.documents.store import building, generations, publishing
from forager.documents.store.generations import select_generations_of_jobs
from forager.documents.store.removal import abandon_building
from forager.documents.versions import base_name, version_key, version_of
from forager.errors import NotAllowed, NotFound
from forager.hints import Hint, Option, action

__all__ = ["abandon_building", "select_generations_of_jobs"]


async def publish(
    database: Database, source_id: str, number: int | None = None, *, force: bool = False
) -> Generation:
    """Let readers see a complete generation (default: the newest); a refused one needs force."""
    async with database.transaction() as connection:
        source = await locked_source(connection, source_id)
        target = await complete_generation(connection, source_id, number)
        if target.is_held_back and not force:
            raise _is_held_back(target)
        return await _swap(connection, target, source)


async def roll_back(database: Database, source_id: str, number: int | None = None) -> Generation:
    """Let readers see an older generation again (default: the one published before)."""
    async with database.transaction() as connection:
        source = await locked_source(connection, source_id)
        if number is None:
            before = await generations.select_published_before(connection, source_id)
        else:
            before = await complete_generation(connection, source_id, number)
        if before is None:
            raise NotAllowed(
                f"source {source_id} has no earlier generation to go back to",
                hint=Hint("{} lists generations.", action("sources generations", source_id)),
            )
        if before.is_held_back:
            raise _is_held_back(before)
        return await _swap(connection, before, source)


def _is_held_back(generation: Generation) -> NotAllowed:
    return NotAllowed(
        f"generation {generation.number} of {generation.source_id} is {generation.label}",
        hint=Hint("Publish it with {}.", Option("force")),
    )


async def swap(
    connection: Connection,
    source: Source,
    generation_id: int,
    expected: int | None,
    *,
    note: str | None = None,
) -> bool:
    """Publish inside the caller's transaction, which must be rolled back if this is False.

    The note is a warning about the generation.
    """
    if not await publishing.activate_generation(connection, source.id, generation_id, expected):
        return False
    await publishing.retire_published(connection, source.id)
    if not await publishing.mark_published(connection, generation_id, note):
        return False
    target = await generations.select_generation_by_id(connection, generation_id)
    assert target is not None  # it was marked in this transaction
    await record_publication(connection, source, target)
    return True


async def reopen(
    connection: Connection, source_id: str, job_id: UUID, *, without: Sequence[bytes]
) -> None:
    """Start another generation of a completed job with the pages of its last one.

    Pages of the URLs in `without` are left out: the job fetches them again.
    """
    published = (await locked_source(connection, source_id)).published_generation
    last = (await generations.select_generations_of_jobs(connection, [job_id])).get(job_id)
    if last is None:
        return  # the job keeps no documents
    newest = await generations.select_newest_complete(connection, source_id)
    is_held_back = last.is_held_back and last.base_id == published
    if newest is None or newest.id != last.id or not (last.id == published or is_held_back):
        raise NotAllowed(
            f"generation {last.number} of {source_id} is not the newest one",
            hint=Hint("{} crawls the source again.", action("sources refresh", source_id)),
        )
    copy = await building.insert_generation(connection, source_id, job_id, published)
    pages = await building.copy_generation(connection, last, copy, without=without)
    carried_over = last.carried_over - (last.pages - pages)
    counts = (
        PageCounts(last.added, last.changed, last.unchanged, carried_over)
        if is_held_back
        else PageCounts(unchanged=pages - carried_over, carried_over=carried_over)
    )
    await building.add_counts(connection, copy, counts)


async def existing_source(connection: Connection, source_id: str) -> Source:
    """A source by its exact name; raises NotFound."""
    source = await generations.select_source(connection, source_id)
    if source is None:
        raise no_such_source(source_id)
    return source


async def locked_source(connection: Connection, source_id: str) -> Source:
    """A source; its row is locked until the end of the transaction."""
    await publishing.lock_source(connection, source_id)
    return await existing_source(connection, source_id)


async def readable_generation(
    connection: Connection, source: Source, number: int | None
) -> Generation:
    """A complete generation by its number; without one, the published generation."""
    number = source.published_number if number is None else number
    if number is None:
        raise nothing_published(source)
    return await complete_generation(connection, source.id, number)


async def complete_generation(
    connection: Connection, source_id: str, number: int | None
) -> Generation:
    """A complete generation by its number; without one, the newest."""
    if number is None:
        found = await generations.select_newest_complete(connection, source_id)
    else:
        found = await generations.select_generation(connection, source_id, number)
    if found is None:
        raise no_such_generation(source_id, number)
    if not found.is_complete:
        raise NotAllowed(f"generation {found.number} of {source_id} is {found.state.label}")
    return found


async def _swap(connection: Connection, target: Generation, source: Source) -> Generation:
    if target.state is State.PUBLISHED:
        return target
    if not await swap(connection, source, target.id, source.published_generation):
        raise NotAllowed(f"generation {target.number} of {source.id} is being deleted")
    return await complete_generation(connection, source.id, target.number)


def nothing_published(source: Source) -> NotAllowed:
    """The error for a source without a published generation, with the reason."""
    if source.held_back_message is None:
        return NotAllowed(f"source {source.id} has nothing published yet")
    return NotAllowed(
        f"source {source.id} has nothing published: {source.held_back_message}",
        hint=publish_hint(source.id),
    )


def publish_hint(source_id: str) -> Hint:
    """How to publish a generation that is held back."""
    return Hint("{} publishes it anyway.", action("sources publish", source_id, force=True))


async def missing_source(
    connection: Connection, source_id: str, owner: UUID | None = None
) -> NotFound:
    """No source has this name; of a version, the error lists those that exist."""
    base = base_name(source_id)
    named = await generations.select_sources_named(connection, base)
    versions = {version_of(each.id) for each in named if owner is None or each.user_id == owner}
    if base == source_id or not (known := sorted(filter(None, versions), key=version_key)):
        return no_such_source(source_id)
    return NotFound(f"there is no source {source_id}", hint=f"Versions: {', '.join(known)}")


def no_such_source(source_id: str) -> NotFound:
    """The error for an unknown source."""
    return NotFound(
        f"there is no source {source_id}", hint=Hint("{} lists sources.", action("sources list"))
    )


def no_such_generation(source_id: str, number: int | None) -> NotFound:
    """The error for a generation that the source does not have."""
    which = "complete generation" if number is None else f"generation {number}"
    return NotFound(
        f"source {source_id} has no {which}",
        hint=Hint("{} lists generations.", action("sources generations", source_id)),
    )
