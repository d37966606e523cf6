"""`forager search reindex`: make the indexes of the search engine anew, while they are in use."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from forager.cli.flags import flags_of
from forager.cli.options import AsJson
from forager.cli.output import note, show_json
from forager.cli.running import run
from forager.cli.steps import Steps
from forager.cli.words import counted
from forager.errors import InvalidInput

if TYPE_CHECKING:
    from forager.index.kind import Kind
    from forager.index.reindex import Progress, Reindexed
    from forager.settings import Settings


class What(StrEnum):
    SECTIONS = "sections"
    PRODUCTS = "products"


def reindex(
    context: typer.Context,
    only: Annotated[What | None, typer.Option(help="One of the two indexes.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make the indexes of the search engine anew, from what PostgreSQL has.

    Searches go on meanwhile, with the old index or with PostgreSQL. Interrupted, the next one goes
    on where this one was.
    """
    settings = flags_of(context).load()
    done = run(_reindex(settings, only, shown=not as_json))
    if as_json:
        return show_json(done)
    for each in done:
        rows = "document" if each.kind == What.SECTIONS else "product"
        again = ", going on with an earlier run" if each.resumed else ""
        note(f"{each.kind}: {counted(each.rows, rows)} in {each.seconds:.1f} s{again}")
    return None


async def _reindex(settings: Settings, only: What | None, *, shown: bool) -> list[Reindexed]:
    from forager.db.database import open_database
    from forager.documents.search.indexing import INDEXED_SECTIONS
    from forager.index.client import EngineClient
    from forager.index.reindex import Reindexer
    from forager.products.indexing import INDEXED_PRODUCTS
    from forager.settings import Search

    if settings.search is not Search.OPENSEARCH or settings.opensearch_url is None:
        raise InvalidInput(
            "there is no search engine: PostgreSQL is searched, and needs no index made",
            hint="Set FORAGER_SEARCH=opensearch and FORAGER_OPENSEARCH_URL.",
        )
    done = []
    async with (
        open_database(settings, name="forager reindex") as database,
        EngineClient(settings.opensearch_url.get_secret_value()) as client,
    ):
        for kind in (INDEXED_SECTIONS, INDEXED_PRODUCTS):
            if only in (None, kind.name):
                with _Shown(kind, shown=shown) as progress:
                    reindexer = Reindexer(
                        database, client, settings.opensearch_prefix, progress=progress
                    )
                    done.append(await reindexer.run(kind))
    return done


class _Shown:
    """Steps that begin when it is known how many there are."""

    def __init__(self, kind: Kind, *, shown: bool) -> None:
        self._what = kind.name
        self._shown = shown
        self._steps: Steps | None = None

    def __enter__(self) -> Progress:
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._steps is not None:
            self._steps.__exit__()

    def _show(self, _kind: str, rows: int, total: int) -> None:
        if self._steps is None:
            self._steps = Steps(self._what, total, shown=self._shown).__enter__()
        self._steps.show(rows)
