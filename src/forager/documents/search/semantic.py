"""Semantic search beside full-text search: questions rarely use the words of their answers."""

from __future__ import annotations

from collections.abc import Sequence

from forager.db.database import Connection, Database
from forager.documents.search import store as search_store
from forager.documents.search.embedding import Embedder, embedder_of
from forager.documents.search.hit import UNEMBEDDED, SearchRequest
from forager.documents.search.scopes import RankedGenerations
from forager.documents.search.score import Candidate, page_names
from forager.documents.search.snippets import plain_text
from forager.documents.search.tsquery import Query, TermKind
from forager.documents.store import embeddings as store
from forager.documents.store.embeddings import SectionText
from forager.errors import ForagerError, error_text
from forager.logs import get_logger
from forager.services.service import Service
from forager.settings import Settings

log = get_logger("documents.search")

SERVICE = "embeddings"
INTERVAL = 30.0
# seconds in which an index over millions of vectors is made
INDEXING = 4 * 3600.0
# documents whose sections are embedded in one step
CHUNK = 50
BATCH = 256
# shorter queries name what they search for
MIN_WORDS = 3
NEAREST = 60
# the score in a ranking in which all pages are equally good
_ONLY = 0.5
_WEIGHT_OF_NAMES = 0.5

NO_PGVECTOR = (
    "PostgreSQL has no pgvector, so questions are answered by words alone: install the extension"
    " (Debian: postgresql-18-pgvector), or set FORAGER_EMBEDDINGS=off"
)


# --- making vectors ----------------------------------------------------------------------------


class Embedding:
    """Embeds the sections that readers see, after they were published."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._has_pgvector: bool | None = None
        # the last document whose sections were embedded
        self._last = 0

    def service(self) -> Service:
        return Service(name=SERVICE, every=INTERVAL, step=self.run_once, chunk=1)

    async def run_once(self) -> int:
        """Embed the sections of some documents; return the number of sections."""
        embedder = embedder_of(self._settings)
        if embedder is None or not await self._is_possible():
            return 0
        async with self._database.connection() as connection:
            is_current = await store.select_model(connection) == embedder.name
            # those before the last one may have been published since
            for after in dict.fromkeys((self._last, 0)):
                sections = await store.select_unembedded(
                    connection, CHUNK, after=after, is_empty=not is_current
                )
                if sections:
                    break
        names = page_names(section.title for section in sections)
        vectors: list[list[float]] = []
        for start in range(0, len(sections), BATCH):
            batch = sections[start : start + BATCH]
            vectors += await embedder.embed([_text(each, names[each.title]) for each in batch])
        if sections:
            await self._write(embedder, sections, vectors)
        elif is_current:
            await self._maintain()
        self._last = sections[-1].document_id if sections else 0
        return len(sections)

    async def run(self) -> None:
        """Embed everything that is missing."""
        while await self.run_once():
            pass

    async def _is_possible(self) -> bool:
        if self._has_pgvector is None:
            self._has_pgvector = await self._database.run(store.has_pgvector)
            if not self._has_pgvector:
                log.warning(NO_PGVECTOR)
        return self._has_pgvector

    async def _write(
        self, embedder: Embedder, sections: Sequence[SectionText], vectors: list[list[float]]
    ) -> None:
        async with self._database.transaction() as connection:
            await store.lock_vectors(connection)
            if await store.select_model(connection) != embedder.name:
                await store.create_vectors(connection, embedder.name, len(vectors[0]))
            keys = [(each.document_id, each.position) for each in sections]
            await store.insert_vectors(connection, keys, vectors)

    async def _maintain(self) -> None:
        await self._database.run(store.mark_embedded)
        await self._database.run(store.delete_orphaned_vectors, CHUNK)
        async with self._database.with_answer_limit(INDEXING).transaction() as connection:
            await store.create_index_if_large(connection)


def _text(section: SectionText, page_name: str) -> str:
    text = plain_text(section.beginning)[:1000]
    return f"{page_name}. {section.heading}. {text}"


async def unembedded_note(
    connection: Connection,
    request: SearchRequest,
    scopes: Sequence[RankedGenerations],
    embedder: Embedder,
) -> str | None:
    """How many of the searched pages cannot be found by meaning yet; None if all can."""
    # an older generation has only the vectors that it shares with a published one
    if not _is_searched(request) or request.generation is not None:
        return None
    generations = [number for scope in scopes for number in scope.generation_ids]
    is_empty = await store.select_model(connection) != embedder.name
    missing, total = await store.count_unembedded(connection, generations, is_empty=is_empty)
    if not missing or not await store.has_pgvector(connection):
        return None
    return f"{UNEMBEDDED} for {missing:,} of {total:,} pages."


# --- searching ---------------------------------------------------------------------------------


def is_question(query: Query) -> bool:
    """Whether a query may describe what it searches for, rather than name it."""
    plain = [term for term in query.terms if term.kind is TermKind.WORDS and not term.negated]
    # "how do I deploy to GitHub Pages" names something as well, but no symbol of a program
    others = [term for term in query.terms if term not in plain]
    is_name = [term.kind is TermKind.IDENTIFIER and term.text.isalpha() for term in others]
    return (
        all(is_name)
        and not any(term.negated for term in others)
        and len(query.alternatives) == 1
        and len(plain) >= MIN_WORDS
    )


def _is_searched(request: SearchRequest) -> bool:
    return request.language is None and request.kind is None


async def find_similar(
    connection: Connection,
    request: SearchRequest,
    scopes: Sequence[RankedGenerations],
    embedder: Embedder,
) -> list[Candidate]:
    """The sections that are nearest to a question in meaning; none if nothing is embedded."""
    if not _is_searched(request):
        return []
    if await store.select_model(connection) != embedder.name:
        return []
    # a source that the question names is the only one to look in
    named = [scope for scope in scopes if scope.is_named]
    scopes = named or scopes
    try:
        [vector] = await embedder.embed([named[0].query.typed if named else request.query])
    except ForagerError as error:
        log.warning("search by meaning failed", error=error_text(error))
        return []
    generations = [number for scope in scopes for number in scope.generation_ids]
    nearest = await store.select_nearest(connection, vector, generations, request.path, NEAREST)
    places = await search_store.select_places(connection, list(nearest), generations)
    found: list[Candidate] = []
    for scope in scopes:
        sources = {generation.source_id for generation in scope.generations}
        keys = [key for key in nearest if places[key].source_id in sources]
        terms = [term.query for term in scope.query.terms]
        matched = await search_store.select_matched_terms(connection, keys, terms)
        found += [
            Candidate(
                document_id=key[0],
                position=key[1],
                ranks=list(map(float, matched.get(key, [False] * len(terms)))),
                heads=[False] * len(terms),
                length=0,
                defines=[False] * len(terms),
                is_listing=False,
                near=0.0,
                place=places[key],
                score=nearest[key] * scope.fits.get(places[key].source_id, 1.0),
                query=scope.query,
                config=scope.config,
                is_similar=True,
            )
            for key in keys
        ]
    return found


def meaning_weight(query: Query, scopes: Sequence[RankedGenerations]) -> float:
    """The weight of the meaning of a query: less if no word of it is too common to be indexed.

    Such words are in nearly all questions, and in few queries that name what they look for.
    """
    scope = next((scope for scope in scopes if scope.is_named), scopes[0])
    return 1.0 if len(scope.query.terms) < len(query.terms) else _WEIGHT_OF_NAMES


def fuse(
    by_words: Sequence[Candidate], by_meaning: Sequence[Candidate], weight: float = 1.0
) -> list[Candidate]:
    """Both rankings in one: pages by the mean of their scores, each on a scale from 0 to 1.

    The best page with all words comes before pages that were found only by meaning.
    """
    words, meaning = _scaled(by_words), _scaled(by_meaning)
    known = {(each.document_id, each.position): each for each in reversed([*by_words, *by_meaning])}
    found = sorted(known.values(), key=lambda each: (each.is_similar, -each.score))
    for each in found:
        page = each.document_id
        each.score = (words.get(page, 0.0) + weight * meaning.get(page, 0.0)) / 2
    best = max((each.score for each in by_words if each.is_complete), default=None)
    for each in found:
        if best is not None and each.document_id not in words and not each.is_complete:
            each.score = min(each.score, best)
    return sorted(found, key=lambda each: (-each.score, each.is_similar, each.document_id))


def _scaled(ranking: Sequence[Candidate]) -> dict[int, float]:
    """The best score of each page: 0 for the worst page, 1 for the best."""
    pages: dict[int, float] = {}
    for each in ranking:
        pages[each.document_id] = max(each.score, pages.get(each.document_id, each.score))
    low, high = min(pages.values(), default=0.0), max(pages.values(), default=0.0)
    return {
        page: (value - low) / (high - low) if high > low else _ONLY for page, value in pages.items()
    }
