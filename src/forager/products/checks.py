"""Checks of the catalog: products, prices, images and tasks are consistent and fresh."""

from __future__ import annotations

from functools import partial
from typing import Any

from forager.archive.storage import size_of
from forager.checks import EXAMPLES, Check, Level, Result, Topic, check, warn
from forager.db.database import Database
from forager.images.files import open_image_files
from forager.products.store import audit as store
from forager.settings import Settings

CHUNK = 10_000
IMAGE_SAMPLE = 200
# how late a task may be before it is reported: the scheduler ticks every second
LATE = 3600.0

INCONSISTENT = "Related data contradict each other."
STALE = "Prices and availability may be outdated."
REPORT = "This is a bug, or the database was changed by hand: report it with a support bundle."

# name of the check and of its statement: level, problem, impact, next step
ROW_PROBLEMS = {
    "products_without_task": (
        Level.WARN,
        "products that no task keeps fresh any more",
        STALE,
        "Track them again: forager products track URL",
    ),
    "tasks_without_domain": (Level.FAIL, "tasks whose domain does not exist", INCONSISTENT, REPORT),
    "completed_without_next_crawl": (
        Level.FAIL,
        "completed tasks that never become due",
        STALE,
        "Schedule them: forager tasks recrawl TASK",
    ),
    "dead_letters_of_living_tasks": (
        Level.FAIL,
        "open dead letters whose task has not failed, or is gone",
        INCONSISTENT,
        "Drop them: forager dead-letters drop",
    ),
    "failed_without_dead_letter": (
        Level.FAIL,
        "failed tasks without a dead letter",
        "They are missing from the list of failed tasks.",
        "Schedule them: forager tasks recrawl TASK",
    ),
    "archive_segments_gone": (
        Level.FAIL,
        "archive segments that tasks or extractions refer to, and that do not exist",
        "Their pages can be neither replayed nor exported.",
        "Run forager archive verify.",
    ),
    "images_without_file": (
        Level.FAIL,
        "images marked as stored without a file record",
        "They cannot be shown.",
        REPORT,
    ),
    "products_not_seen": (
        Level.WARN,
        "products not seen for three of their intervals",
        STALE,
        "See forager doctor; their pages may be gone, or their domain may fail.",
    ),
    "tasks_overdue": (
        Level.WARN,
        "tasks that have been due for more than an hour",
        STALE,
        "See forager doctor: it shows what they wait for.",
    ),
    "domains_that_fail": (
        Level.WARN,
        "domains all of whose tasks have failed",
        STALE,
        "See forager dead-letters list.",
    ),
}


async def _check_rows(name: str, database: Database, settings: Settings) -> Result:
    level, message, _, next_step = ROW_PROBLEMS[name]
    count, examples = await database.run(
        store.find, name, examples=EXAMPLES, every=settings.recrawl_every, late=LATE
    )
    return warn(message, next_step, found=examples, count=count, level=level) if count else "none"


ROW_CHECKS = [
    Check(name, Topic.PRODUCTS, impact, partial(_check_rows, name))
    for name, (_, _, impact, _) in ROW_PROBLEMS.items()
]


@check("prices_differ", Topic.PRODUCTS, INCONSISTENT)
async def check_prices(database: Database, _settings: Settings) -> Result:
    """Check in chunks, so that no statement takes long in a large catalog."""
    wrong: list[Any] = []
    count = 0
    after: int | None = 0
    while after is not None:
        found, after = await database.run(store.check_prices, after=after, limit=CHUNK)
        count += len(found)
        wrong = (wrong + found)[:EXAMPLES]
    if not count:
        return "none"
    message = "products whose price is not the last one in their history"
    return warn(message, REPORT, found=wrong, count=count, level=Level.FAIL)


@check("image_files_missing", Topic.PRODUCTS, "They cannot be shown.")
async def check_image_files(database: Database, settings: Settings) -> Result:
    files = open_image_files(settings)
    missing = []
    for image_id, path, size in await database.run(store.sample_images, IMAGE_SAMPLE):
        # it may have been deleted, with its file, since it was listed
        if await size_of(files, path) != size and await database.run(
            store.is_stored, image_id, path
        ):
            missing.append(image_id)
    if not missing:
        return "none"
    return warn(
        "images of a sample whose file is missing or cut off",
        "Restore the image files from a backup.",
        found=missing[:EXAMPLES],
        count=len(missing),
        level=Level.FAIL,
    )
