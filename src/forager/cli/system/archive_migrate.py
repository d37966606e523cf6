"""`forager archive migrate`: the archive and the images to another place, while both are in use."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from forager.amounts import size_in_words
from forager.archive.migration import Move, Moved
from forager.archive.options import archive_options, is_same_place, place_name, place_of
from forager.archive.storage import open_storage
from forager.cli.options import AsJson, flags_of, option
from forager.cli.output import Steps, counted, note, plain, say, show_json
from forager.cli.running import fail_unless
from forager.db.database import open_database
from forager.errors import InvalidInput, NotAllowed
from forager.images.files import image_files_at
from forager.images.migration import ImageMove, MovedImages
from forager.settings import Settings

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Route:
    """From where to where; `arrived` if the settings name the new place already."""

    source: str | Path
    target: str | Path
    name: str
    arrived: bool


@dataclass(frozen=True, slots=True)
class Migration:
    """What a run did."""

    route: Route
    pages: Moved
    images: MovedImages
    deleted: int | None

    @property
    def missing(self) -> list[str]:
        return [*self.pages.missing, *self.images.missing]

    @property
    def complete(self) -> bool:
        return self.route.arrived and self.pages.complete and not self.images.missing

    def as_json(self) -> dict[str, Any]:
        return {
            "from": str(self.route.source),
            "to": str(self.route.target),
            "complete": self.complete,
            "segments": plain(self.pages),
            "images": plain(self.images),
            "deleted": self.deleted,
        }


def migrate(
    context: typer.Context,
    to: Annotated[
        str, typer.Option("--to", help="s3://BUCKET/FOLDER, a folder, or `local`.", metavar="PLACE")
    ],
    delete_source: bool = option(
        "Delete copied files from the old location.", "--delete-source", default=False
    ),
    as_json: AsJson = False,
) -> None:
    """Copy archive and images to another location, and verify each copy.

    Forager keeps working. An interrupted run resumes where it stopped; another run copies what was
    added since. Nothing is deleted without --delete-source.
    """
    settings = flags_of(context).load()
    route = route_of(settings, to)
    if delete_source and not route.arrived:
        raise NotAllowed(
            "responses are still read from the old place alone",
            hint="Set archive_url to the new place and archive_old_url to the old one first.",
        )
    done = asyncio.run(_migrate(settings, route, delete_source=delete_source, shown=not as_json))
    if as_json:
        show_json(done.as_json())
    else:
        _show(done)
    fail_unless(lambda migration: not migration.missing)(done)


def route_of(settings: Settings, to: str) -> Route:
    """Refused where both ends are one place: a source that is deleted would be the only copy."""
    options = archive_options(settings)
    target = place_of(to, settings)
    name = place_name(target)
    if not is_same_place(target, options.place):
        return Route(options.place, target, name, arrived=False)
    if options.old_place is None or is_same_place(options.old_place, target):
        raise InvalidInput(
            f"the archive is at {target} already",
            hint="Set archive_old_url to the place where it was before.",
        )
    return Route(options.old_place, target, name, arrived=True)


async def _migrate(
    settings: Settings, route: Route, *, delete_source: bool, shown: bool
) -> Migration:
    source, target = open_storage(route.source), open_storage(route.target)
    old_images, new_images = image_files_at(route.source), image_files_at(route.target)
    async with open_database(settings, name="forager cli") as database:
        pages = Move(database, source, target, route.name)
        await pages.recheck()
        with Steps("segments", await pages.count(), shown=shown) as steps:
            moved = await pages.run(steps.show)
        images = ImageMove(database, old_images, new_images, route.name)
        with Steps("images", await images.count(), shown=shown) as steps:
            moved_images = await images.run(steps.show)
        deleted = None
        if delete_source:
            deleted = await pages.delete_source() + await images.delete_source()
    return Migration(route, moved, moved_images, deleted)


def _show(done: Migration) -> None:
    for name in done.missing[:SHOWN]:
        say(f"{name}: rows refer to it, and it is in neither place", "red")
    pages, images = done.pages, done.images
    say(
        f"{counted(pages.copied, 'segment')} ({size_in_words(pages.bytes)}) and"
        f" {counted(images.copied, 'image')} ({size_in_words(images.bytes)}) copied to"
        f" {done.route.target}; {pages.found + images.found} were there already."
    )
    if done.deleted is not None:
        say(f"{counted(done.deleted, 'file')} deleted from {done.route.source}.")
    if pages.waiting:
        note(f"{counted(pages.waiting, 'segment')} may still be written to: run this again later.")
    if not done.route.arrived:
        note(
            f"To use the copy, set FORAGER_ARCHIVE_URL={done.route.target} and"
            f" FORAGER_ARCHIVE_OLD_URL={done.route.source} for all processes, start them again,"
            " and run this once more."
        )
    elif done.complete:
        note("Everything is there: FORAGER_ARCHIVE_OLD_URL can be unset.")
