"""The writer of a generation: adds the pages of each batch, and publishes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from forager.db.database import Connection
from forager.db.text_search import CONFIGURATIONS, NEUTRAL
from forager.documents import publication
from forager.documents.generation import NOT_PUBLISHED, failure_note, objection
from forager.documents.names import new_sections
from forager.documents.page import (
    CommitPlan,
    IndexedDocument,
    NewPage,
    PageCounts,
    PreviousPage,
    SampledPage,
    make_plan,
)
from forager.documents.publication_events import record_held_back
from forager.documents.store import building, publishing, removal, words
from forager.documents.store.building import SourceRow
from forager.errors import GiveUp
from forager.extract.document import OF_MARKDOWN
from forager.extract.languages import primary_language
from forager.jobs.context import JobContext

MAX_KEYS = 10_000
# a sample of fewer pages is taken again when the source has this many times as many
SMALL_SAMPLE = 50
GROWTH = 4


class GenerationWriter:
    """Builds the generation of one job. `write` and `finish` are part of the caller's commits."""

    def __init__(
        self,
        context: JobContext,
        source_id: str,
        base_url: str,
        source: SourceRow,
        generation_id: int,
        base_id: int | None,
        extractor_version: str,
    ) -> None:
        self.source_id = source_id
        self._base_url = base_url
        self.generation_id = generation_id
        self.base_id = base_id
        self._context = context
        self._source_number = source.number
        self._config = source.config
        self._sets_config = source.config is None
        self._extractor_version = extractor_version
        # the blocks that the pages of the source have in common, once they are known
        self.repeated = source.repeated
        # how the site offers its pages as markdown, "none" if it does not; None: not known
        self.markdown_way = source.markdown_way
        # whether pages that were read as markdown are still read so
        self.reads_markdown = True

    @classmethod
    async def open(
        cls, context: JobContext, *, base_url: str, extractor_version: str | int
    ) -> Self:
        """Begin the job's generation, or continue it. The first call pins its base."""
        job, version = context.job, str(extractor_version)
        if job.source_id is None:
            raise GiveUp("a crawl without a source has nowhere to keep its pages")
        async with context.transaction() as connection:
            # locks the source: a deletion of its old pages is complete, or will see this job
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
            repeated = await _still_repeated(connection, source.repeated, *started, version)
        source = source._replace(repeated=repeated)
        return cls(context, job.source_id, base_url, source, *started, version)

    async def previous(self, keys: Sequence[bytes]) -> dict[bytes, PreviousPage]:
        """The pages of the base generation with these keys; one query."""
        if self.base_id is None or not keys:
            return {}
        if len(keys) > MAX_KEYS:
            raise ValueError(f"{len(keys)} keys at once; at most {MAX_KEYS} go")
        return await self._context.database.run(
            building.select_previous, self.base_id, keys, self._current_versions
        )

    @property
    def _current_versions(self) -> list[str]:
        """The versions of documents that need not be extracted again."""
        version = self._full_version
        return [version, version + OF_MARKDOWN] if self.reads_markdown else [version]

    @property
    def _full_version(self) -> str:
        """The version of new documents: the extractor's, and that of the learned blocks."""
        digest = self.repeated["digest"] if self.repeated else ""
        return f"{self._extractor_version}-{digest}" if digest else self._extractor_version

    async def links_of(self, link_sets: Sequence[bytes]) -> dict[bytes, bytes]:
        """The links of pages that were not fetched, as `NewPage.outlinks` once had them."""
        return await self._context.database.run(building.select_links, self.source_id, link_sets)

    def plan(self, pages: Sequence[NewPage], previous: Mapping[bytes, PreviousPage]) -> CommitPlan:
        """Decide what is new and what is used again. Writes nothing."""
        documents = [page.document for page in pages if page.document is not None]
        if self._config is None and documents:
            # only once: a source that is indexed in two ways is found by neither
            self._config = configuration_for(doc.language for doc in documents) or NEUTRAL
        return make_plan(pages, previous)

    async def write(self, connection: Connection, plan: CommitPlan) -> None:
        """Write a batch inside its commit. Fetches nothing, so it can be part of a pipeline."""
        if plan.new:
            await self._insert(connection, plan.new)
        if plan.link_sets:
            await building.insert_link_sets(connection, self.source_id, plan.link_sets)
        if plan.listed:
            await building.list_pages(connection, self.source_id, self.generation_id, plan.listed)
        if plan.copied:
            await self._copy(connection, plan.copied)
        if plan.counts.pages:
            await building.add_counts(connection, self.generation_id, plan.counts)

    async def _insert(self, connection: Connection, pages: Sequence[NewPage]) -> None:
        assert self._config is not None
        if self._sets_config:
            # with every batch: whether an earlier one was committed is not known here
            await building.set_config(connection, self.source_id, self._config)
        sections = [new_sections(page) for page in pages]
        await words.insert_documents(
            connection, self.source_id, self._source_number, self._config, pages, sections
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
        pages = [
            NewPage(url=page.url, key=page.key, document=document) for page, document in reread
        ]
        await self._insert(connection, pages)
        await building.relist_pages(connection, self.source_id, self.generation_id, pages)
        await building.add_counts(
            connection, self.generation_id, await self._recount(connection, reread)
        )
        replaced = [page.document_id for page, _ in reread]
        if unused := await removal.delete_unused_documents(connection, replaced):
            await removal.delete_sections(connection, unused)

    async def store_markdown_way(self, connection: Connection, way: str) -> None:
        """Remember how the site offers its pages as markdown."""
        await building.set_markdown_way(connection, self.source_id, way)

    async def _recount(
        self, connection: Connection, reread: Sequence[tuple[SampledPage, IndexedDocument]]
    ) -> PageCounts:
        """The changes of the counts by pages that were extracted again."""
        counts = PageCounts()
        if self.base_id is None:
            return counts
        keys = [page.key for page, _ in reread]
        previous = await building.select_previous(
            connection, self.base_id, keys, self._current_versions
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

        Also find pages that are nearly the same; return their number.
        """
        async with self._context.transaction() as connection:
            await words.count_words(connection, self.generation_id)
            await publishing.count_inbound_links(connection, self.generation_id)
            return await publishing.find_near_duplicates(connection, self.generation_id)

    async def finish(self, connection: Connection) -> str | None:
        """Publish inside the transaction that completes the job, or return why not."""
        source = await publication.locked_source(connection, self.source_id)
        if self.base_id is not None:
            await publishing.count_removed(connection, self.generation_id)
        effort = await publishing.select_effort(connection, self._context.job.id)
        if source.published_generation != self.base_id:
            reason: str | None = "what was published when the crawl began has been replaced since"
        else:
            pages, _ = await building.select_counts(connection, self.generation_id)
            reason = objection(pages, source, effort)
        if reason is not None:
            await publishing.hold_back(connection, self.generation_id, reason)
            await record_held_back(connection, source, self.generation_id)
            return NOT_PUBLISHED
        swapped = await publication.swap(
            connection,
            source,
            self.generation_id,
            self.base_id,
            note=failure_note(source.max_failed, effort),
        )
        # the source is locked, and the generation of a running job is never abandoned
        assert swapped
        job = self._context.job
        await publishing.remember_job(
            connection,
            self.source_id,
            job.kind,
            job.lasting_payload,
            base_url=self._base_url,
            asked=job.created_at,
        )
        return None


async def _still_repeated(
    connection: Connection,
    repeated: dict[str, Any] | None,
    generation_id: int,
    base_id: int | None,
    extractor_version: str,
) -> dict[str, Any] | None:
    """The repeated blocks that were learned of a source; None if they must be learned again.

    That is the case with a newer extractor, after a later crawl that found most pages changed,
    and when the site has grown far beyond a small sample.
    """
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
    known = Counter(primary_language(language) for language in languages if language)
    if not known:
        return None
    return CONFIGURATIONS.get(known.most_common(1)[0][0], NEUTRAL)
