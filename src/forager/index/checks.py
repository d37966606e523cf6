"""Check of the search engine."""

from __future__ import annotations

from forager.checks import Result, Topic, check, fail, warn
from forager.db.database import Database
from forager.index.client import EngineClient
from forager.index.kind import LAYOUT, PRODUCTS, SECTIONS, EngineUnavailable
from forager.index.store import IndexState, select_index
from forager.outbox.message import OutboxBacklog
from forager.outbox.service import select_backlog
from forager.settings import Search, Settings

# changes are sent within seconds
LONG = 60.0
ANSWER_LIMIT = 10.0
REINDEX = "Run forager search reindex; searches keep working."


@check(
    "search",
    Topic.WORK,
    "Without the configured search engine, PostgreSQL answers searches, more slowly.",
)
async def check_search(database: Database, settings: Settings) -> Result:
    if settings.search is Search.POSTGRES or settings.opensearch_url is None:
        return "PostgreSQL"
    found: dict[str, tuple[IndexState | None, OutboxBacklog]] = {}
    async with database.connection() as connection:
        for kind in (SECTIONS, PRODUCTS):
            state = await select_index(connection, kind)
            found[kind] = state, await select_backlog(connection, [kind])
    try:
        async with EngineClient(settings.opensearch_url.get_secret_value()) as client:
            missing = [kind for kind, (state, _) in found.items() if await _lacks(client, state)]
    except EngineUnavailable as error:
        return fail(
            f"{error.message}; PostgreSQL answers searches, and no change is lost",
            "Start it, or correct FORAGER_OPENSEARCH_URL; with FORAGER_SEARCH=postgres it is not"
            " needed.",
        )
    if missing:
        names = " and ".join(missing)
        return warn(f"the index of {names} is missing or not complete", REINDEX)
    return _fed([backlog for _, backlog in found.values()])


async def _lacks(client: EngineClient, state: IndexState | None) -> bool:
    """Whether searches cannot ask the index."""
    await client.request("GET", "", limit=ANSWER_LIMIT)
    if state is None or state.name is None or not state.is_complete or state.layout != LAYOUT:
        return True
    return await client.uuid_of(state.name) != state.uuid


def _fed(backlogs: list[OutboxBacklog]) -> Result:
    waiting = sum(backlog.waiting for backlog in backlogs)
    refused = sum(backlog.refused for backlog in backlogs)
    seconds = max(backlog.oldest_seconds for backlog in backlogs)
    message = f"the indexes are complete; {waiting} changes wait to be indexed"
    if refused:
        return warn(
            f"{message}, {refused} were refused by the search engine",
            "See the column last_error of the outbox. Searches do not find these rows.",
        )
    if waiting and seconds > LONG:
        return warn(
            f"{message}, the oldest for {seconds:.0f} s",
            "See whether a worker with this FORAGER_SEARCH runs, and its log.",
        )
    return message
