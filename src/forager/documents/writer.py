"""The writer of a generation: a crawl builds one with it, batch by batch, and publishes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from forager.db.database import Connection
from forager.db.text_search import CONFIGURATIONS, NEUTRAL, primary
from forager.documents import publication
from forager.documents.generation import objection
from forager.documents.names import new_sections
from forager.documents.page import (
    Counts,
    IndexedDocument,
    NewPage,
    Plan,
    PreviousPage,
    SampledPage,
    make_plan,
)
from forager.documents.store import building, publishing, removal, words
from forager.documents.store.publishing import count_inbound_links, find_near_duplicates
from forager.documents.store.words import count_words
from forager.errors import GiveUp
from forager.jobs.context import JobContext
from forager.jobs.store.leases import hold_lease

MAX_KEYS = 10_000
# the stop reason of a job whose generation was refused; the generation's note says why
NOT_PUBLISHED = "not published"
# a sample of fewer pages is taken again when the source has this many times as many
SMALL_SAMPLE = 50
GROWTH = 4


class GenerationWriter:
    """Builds the generation of one job. `write` and `finish` are part of the caller's commits."""

    def __init__(
        self,
        context: JobContext,
        *,
        source_id: str,
        source_number: int,
        generation_id: int,
        base_id: int | None,
        config: str | None,
        extractor_version: str,
        repeated: dict[str, Any] | None,
    ) -> None:
        self.source_id = source_id
        self.generation_id = generation_id
        self.base_id = base_id
        self._context = context
        self._source_number = source_number
        self._config = config
        self._config_is_ours = config is None
        self._extractor_version = extractor_version
        # what the pages of the source have in common, once that is known
        self.repeated = repeated

    @classmethod
    async def open(
        cls, context: JobContext, *, base_url: str, extractor_version: str | int
    ) -> Self:
        """Begin the job's generation, or continue it. The first call pins what it builds on."""
        job = context.job
        if job.source_id is None:
            raise GiveUp("a crawl without a source has nowhere to keep its pages")
        async with context.database.transaction() as connection:
            await hold_lease(connection, context.lease)
            # locks the source: a deletion of its old pages is done, or will see this job
            source = await building.upsert_source(
                connection,
                job.source_id,
                base_url=base_url,
                user_id=job.user_id,
                kind=job.kind,
                payload=job.lasting_payload,
            )
            started = await building.select_building(connection, job.id)
            if started is None:
                generation_id = await building.insert_generation(
                    connection, job.source_id, job.id, source.published
                )
                started = (generation_id, source.published)
            repeated = await _still_repeated(
                connection, source.repeated, started, str(extractor_version)
            )
        return cls(
            context,
            source_id=job.source_id,
            source_number=source.number,
            generation_id=started[0],
            base_id=started[1],
            config=source.config,
            extractor_version=str(extractor_version),
            repeated=repeated,
        )

    async def previous(self, keys: Sequence[bytes]) -> dict[bytes, PreviousPage]:
        """What the base generation knows of these URLs; one query."""
        if self.base_id is None or not keys:
            return {}
        if len(keys) > MAX_KEYS:
            raise ValueError(f"{len(keys)} keys at once; at most {MAX_KEYS} go")
        return await self._context.database.run(
            building.select_previous, self.base_id, keys, self._full_version
        )

    @property
    def _full_version(self) -> str:
        """The version of documents that are made now: the extractor's, and what was learned."""
        digest = self.repeated["digest"] if self.repeated else ""
        return f"{self._extractor_version}-{digest}" if digest else self._extractor_version

    async def links_of(self, link_sets: Sequence[bytes]) -> dict[bytes, bytes]:
        """The links of pages that were not fetched, as `NewPage.outlinks` once had them."""
        return await self._context.database.run(building.select_links, self.source_id, link_sets)

    def plan(self, pages: Sequence[NewPage], previous: Mapping[bytes, PreviousPage]) -> Plan:
        """Decide what is new and what is used again. Writes nothing."""
        documents = [page.document for page in pages if page.document is not None]
        if self._config is None and documents:
            # once and for all: a source that is indexed in two ways is found by neither
            self._config = configuration_for(doc.language for doc in documents) or NEUTRAL
        return make_plan(pages, previous)

    async def write(self, connection: Connection, plan: Plan) -> None:
        """Write a batch inside its commit. Fetches nothing, so it can be part of a pipeline."""
        await self._write_documents(connection, plan)
        if plan.link_sets:
            await building.insert_link_sets(connection, self.source_id, plan.link_sets)
        if plan.new:
            await building.list_new_pages(connection, self.source_id, self.generation_id, plan.new)
        if plan.reused:
            await building.list_reused_pages(connection, self.generation_id, plan.reused)
        if plan.copied:
            await self._copy(connection, plan.copied)
        if plan.counts.pages:
            await building.add_counts(connection, self.generation_id, plan.counts)

    async def _write_documents(self, connection: Connection, plan: Plan) -> None:
        if not plan.new:
            return
        assert self._config is not None
        if self._config_is_ours:
            # with every batch: whether an earlier one was committed is not known here
            await building.set_config(connection, self.source_id, self._config)
        await self._insert(connection, self._config, [page.page for page in plan.new])

    async def _insert(self, connection: Connection, config: str, pages: Sequence[NewPage]) -> None:
        sections = [new_sections(page) for page in pages]
        await words.insert_documents(
            connection, self.source_id, self._source_number, config, pages, sections
        )

    async def sample(self, limit: int) -> list[SampledPage]:
        """Pages of the generation from which it can be learned what they have in common."""
        return await self._context.database.run(building.select_sample, self.generation_id, limit)

    async def store_repeated(
        self,
        connection: Connection,
        repeated: dict[str, Any],
        reread: Sequence[tuple[SampledPage, IndexedDocument]],
    ) -> None:
        """Store what was learned, and the documents of the pages that were read again with it."""
        about = {"extractor": self._extractor_version, "generation": self.generation_id}
        self.repeated = {**about, **repeated}
        await building.set_repeated(connection, self.source_id, self.repeated)
        if not reread:
            return
        assert self._config is not None
        pages = [
            NewPage(url=page.url, key=page.key, document=document, names=document.names)
            for page, document in reread
        ]
        await self._insert(connection, self._config, pages)
        await building.relist_pages(connection, self.source_id, self.generation_id, pages)
        await building.add_counts(
            connection, self.generation_id, await self._recount(connection, reread)
        )
        replaced = [page.document_id for page, _ in reread]
        if unused := await removal.delete_unused_documents(connection, replaced):
            await removal.delete_sections(connection, unused)

    async def _recount(
        self, connection: Connection, reread: Sequence[tuple[SampledPage, IndexedDocument]]
    ) -> Counts:
        """How the counts change because pages were read again."""
        counts = Counts()
        if self.base_id is None:
            return counts
        keys = [page.key for page, _ in reread]
        previous = await building.select_previous(
            connection, self.base_id, keys, self._full_version
        )
        for page, document in reread:
            if before := previous.get(page.key):
                was_same = before.content_hash == page.content_hash
                is_same = before.content_hash == document.content_hash
                counts.unchanged += is_same - was_same
                counts.changed += was_same - is_same
        return counts

    async def _copy(self, connection: Connection, pages: Sequence[NewPage]) -> None:
        assert self.base_id is not None
        await building.hold_segments(connection, self.base_id, [page.key for page in pages])
        await building.copy_pages(connection, self.base_id, self.generation_id, pages)

    async def complete(self) -> int:
        """Count words and links of the complete generation, before readers see it.

        Also find pages that are nearly the same; how many there are.
        """
        async with self._context.database.transaction() as connection:
            await hold_lease(connection, self._context.lease)
            await count_words(connection, self.generation_id)
            await count_inbound_links(connection, self.generation_id)
            return await find_near_duplicates(connection, self.generation_id)

    async def finish(self, connection: Connection) -> str | None:
        """Publish inside the transaction that completes the job, or say why not."""
        locked = await publishing.lock_source(connection, self.source_id)
        assert locked is not None  # a source with an active job is not deleted
        published, limits = locked
        await publishing.count_removed(connection, self.generation_id)
        reason = (
            "what was published when the crawl began has been replaced since"
            if published != self.base_id
            else objection(
                await publishing.count_pages(connection, self.generation_id),
                await publishing.count_pages(connection, published),
                await publishing.select_effort(connection, self._context.job.id),
                limits,
            )
        )
        if reason is not None:
            await publishing.mark_refused(
                connection, self.generation_id, f"{NOT_PUBLISHED}: {reason}"
            )
            return NOT_PUBLISHED
        swapped = await publication.swap(connection, self.source_id, self.generation_id, published)
        assert (
            swapped
        )  # the source is locked, and the generation of a running job is never abandoned
        job = self._context.job
        await publishing.remember_job(
            connection, self.source_id, job.kind, job.lasting_payload, asked=job.created_at
        )
        return None


async def _still_repeated(
    connection: Connection,
    repeated: dict[str, Any] | None,
    started: tuple[int, int | None],
    extractor_version: str,
) -> dict[str, Any] | None:
    """What was learned of a source, unless the site is another one by now.

    It is learned again by a newer extractor, after a crawl that it did not come from and that
    found most pages changed, and when the site has grown far beyond a small sample.
    """
    generation_id, base_id = started
    if repeated is None or repeated["extractor"] != extractor_version:
        return None
    if base_id is None or repeated["generation"] in (generation_id, base_id):
        return repeated
    pages, changed = await building.select_counts(connection, base_id)
    is_redesigned = 2 * changed > pages
    has_grown = repeated["pages"] < SMALL_SAMPLE and pages >= GROWTH * repeated["pages"]
    return None if is_redesigned or has_grown else repeated


def configuration_for(languages: Iterable[str | None]) -> str | None:
    """The text search configuration of the language most pages are in; None if none is known."""
    known = Counter(primary(language) for language in languages if language)
    if not known:
        return None
    return CONFIGURATIONS.get(known.most_common(1)[0][0], NEUTRAL)
