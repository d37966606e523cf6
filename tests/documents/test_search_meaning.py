from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from forager.db.database import Database
from forager.documents.search import SearchRequest, search
from forager.documents.search import semantic as module
from forager.documents.search.embedding import (
    EmbeddingFailed,
    EndpointModel,
    embedder_of,
    static_model,
)
from forager.documents.search.score import Candidate
from forager.documents.search.semantic import Embedding
from forager.documents.store import embeddings as store
from forager.settings import Settings
from search_corpus import Corpus
from support.waiting import lock_waited_for

PAGES: dict[str, Any] = {
    "/venv": [("Virtual environments", "An environment has its own set of installed modules.")],
    "/power": [("Power", "The install folder of packages is somewhere else.")],
}


class TwoTopics:
    """A model with two dimensions: is it about isolation, or about anything else?"""

    def __init__(self, name: str = "topics 1") -> None:
        self.name = name
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.texts += texts
        return [
            [1.0, 0.1] if "isolat" in text or "nvironment" in text else [0.1, 1.0] for text in texts
        ]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> TwoTopics:
    model = TwoTopics()
    monkeypatch.setattr(module, "embedder_of", lambda _: model)
    return model


async def first(database: Database, query: str, model: Any) -> str:
    page = await search(database, SearchRequest(query=query), None, model)
    return page.items[0].heading


async def test_questions_are_answered_by_meaning_too(
    database: Database, settings: Settings, model: TwoTopics
) -> None:
    await Corpus(database).publish("d.example", PAGES)
    question = "install packages in an isolated folder"
    assert await first(database, question, model) == "Power"  # nothing is embedded yet
    embedding = Embedding(database, settings)
    await embedding.run()
    assert len(model.texts) == 2
    page = await search(database, SearchRequest(query=question), None, model)
    assert {hit.heading for hit in page.items} == {"Power", "Virtual environments"}
    assert await first(database, "keep projects isolated somehow", model) == "Virtual environments"
    # names are not questions
    assert await first(database, "install folder", model) == "Power"


async def test_matches_by_meaning_list_their_missing_words_after_complete_matches(
    database: Database, settings: Settings, model: TwoTopics
) -> None:
    pages = {
        **PAGES,
        "/all": [("Notes", "Some projects were kept isolated, somehow.")],
        "/empty": [("Environment", "")],
    }
    await Corpus(database).publish("d.example", pages)
    await Embedding(database, settings).run()
    query = "isolated by projects"
    page = await search(database, SearchRequest(query=query), None, model)
    complete, *similar = page.items
    assert (complete.heading, complete.missing) == ("Notes", ())
    assert {hit.missing for hit in similar} == {("isolated", "projects")}
    assert all(hit.snippet for hit in similar)
    assert page.note == "Some results were found by meaning, without all of the words."


async def test_only_what_changed_is_embedded_and_a_new_model_embeds_all(
    database: Database, settings: Settings, model: TwoTopics
) -> None:
    corpus = Corpus(database)
    await corpus.publish("d.example", PAGES)
    embedding = Embedding(database, settings)
    await embedding.run()
    await corpus.publish("d.example", {**PAGES, "/new": [("New", "Text.")]})
    model.texts.clear()
    await embedding.run()
    assert [text.partition(".")[0] for text in model.texts] == ["New"]
    model.texts.clear()
    model.name = "topics 2"
    await embedding.run()
    assert len(model.texts) == 3
    async with database.connection() as connection:
        assert await store.select_model(connection) == "topics 2"


async def test_searches_say_how_many_pages_have_no_vectors_yet(
    database: Database, settings: Settings, model: TwoTopics
) -> None:
    corpus = Corpus(database)
    request = SearchRequest(query="install packages in an isolated folder")
    await corpus.publish("d.example", PAGES)
    page = await search(database, request, None, model)
    assert "Meaning is not indexed yet for 2 of 2 pages." in (page.note or "")
    await Embedding(database, settings).run()
    await corpus.publish("d.example", {**PAGES, "/new": [("New", "An isolated text.")]})
    page = await search(database, request, None, model)
    assert "Meaning is not indexed yet for 1 of 3 pages." in (page.note or "")
    await Embedding(database, settings).run()
    page = await search(database, request, None, model)
    assert "not indexed" not in (page.note or "")
    # names are not searched by meaning
    model.name = "topics 2"
    page = await search(database, SearchRequest(query="isolated folder"), None, model)
    assert "not indexed" not in (page.note or "")
    page = await search(database, request, None, model)
    assert "Meaning is not indexed yet for 3 of 3 pages." in (page.note or "")


async def test_documents_before_the_last_one_are_embedded_too_and_none_twice(
    database: Database, settings: Settings, model: TwoTopics
) -> None:
    await Corpus(database).publish("d.example", PAGES)
    embedding = Embedding(database, settings)
    assert await embedding.run_once() == 2
    vectors: list[tuple[tuple[int, int], list[float]]] = []
    async with database.transaction() as connection:
        cursor = await connection.execute(
            "SELECT document_id, position, embedding::real[] FROM section_vectors ORDER BY 1"
        )
        vectors = [((row[0], row[1]), row[2]) for row in await cursor.fetchall()]
        assert [vector for _, vector in vectors] == [
            pytest.approx(each, abs=1e-3) for each in ([1.0, 0.1], [0.1, 1.0])
        ]
        # as if the pages with the lower numbers were published later
        await connection.execute(
            "DELETE FROM section_vectors WHERE document_id = %s", (vectors[0][0][0],)
        )
    assert await embedding.run_once() == 1
    async with database.transaction() as connection:
        # another worker was slower
        await store.insert_vectors(connection, *zip(*vectors, strict=True))
        cursor = await connection.execute("SELECT count(*) FROM section_vectors")
        assert await cursor.fetchone() == (2,)


async def test_workers_that_embed_for_the_first_time_together_keep_all_vectors(
    database: Database, settings: Settings, model: TwoTopics
) -> None:
    await Corpus(database).publish("d.example", PAGES)
    async with database.transaction() as connection:
        await store.lock_vectors(connection)
        waiting = asyncio.ensure_future(Embedding(database, settings).run_once())
        await lock_waited_for(database)
        # by another worker, which has embedded another document
        await store.create_vectors(connection, model.name, 2)
        await store.insert_vectors(connection, [(0, 0)], [[1.0, 0.1]])
    assert await waiting == 2
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT count(*) FROM section_vectors")
        assert await cursor.fetchone() == (3,)


async def test_many_vectors_are_indexed_without_a_time_limit(
    database: Database, settings: Settings, model: TwoTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Corpus(database).publish("d.example", PAGES)
    monkeypatch.setattr(store, "MANY", 2)
    async with database.transaction() as connection:
        embedding = Embedding(database, settings)
        await embedding.run_once()
        await store.create_index_if_large(connection)
        cursor = await connection.execute(
            "SELECT current_setting('statement_timeout'), to_regclass('section_vectors_idx')::text"
        )
        assert await cursor.fetchone() == ("0", "section_vectors_idx")
        await connection.execute("DROP INDEX section_vectors_idx")
    await embedding.run()
    question = "keep projects isolated somehow"
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT to_regclass('section_vectors_idx')::text")
        assert await cursor.fetchone() == ("section_vectors_idx",)
    assert await first(database, question, model) == "Virtual environments"


async def test_without_pgvector_words_answer_alone(
    database: Database, settings: Settings, model: TwoTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missing(_: object) -> bool:
        return False

    monkeypatch.setattr(store, "has_pgvector", missing)
    await Corpus(database).publish("d.example", PAGES)
    await Embedding(database, settings).run()
    assert model.texts == []
    assert await first(database, "install packages in an isolated folder", model) == "Power"


@pytest.fixture
async def endpoint() -> AsyncIterator[Any]:
    async def embed(request: web.Request) -> web.Response:
        asked = await request.json()
        if request.headers.get("authorization") != "Bearer secret":
            return web.json_response({"error": "no"}, status=401)
        large = 1e6 if asked["model"] == "large" else 1
        rows = [{"index": n, "embedding": [n, large]} for n in range(len(asked["input"]))]
        return web.json_response({"data": rows[::-1]})

    app = web.Application()
    app.router.add_post("/v1/embeddings", embed)
    async with TestServer(app) as server:
        yield server


async def test_an_endpoint_embeds_texts_or_says_why_not(endpoint: TestServer) -> None:
    model = EndpointModel(str(endpoint.make_url("/v1")), "small", "secret")
    assert await model.embed(["a", ""]) == [[0.0, 1.0], [1.0, 1.0]]
    with pytest.raises(EmbeddingFailed, match="401"):
        await EndpointModel(str(endpoint.make_url("/v1")), "small", None).embed(["a"])
    with pytest.raises(EmbeddingFailed, match="too large"):
        await EndpointModel(str(endpoint.make_url("/v1")), "large", "secret").embed(["a"])


async def test_the_model_of_the_extra_knows_what_is_alike() -> None:
    pytest.importorskip("wordllama", reason="there is no wheel for this Python")
    model = static_model()
    assert model is not None
    one, other, far = await model.embed(["a cat sleeps", "the kitten is asleep", "compile errors"])

    def nearness(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert nearness(one, other) > nearness(one, far) + 0.2
    assert nearness(one, one) == pytest.approx(1)


async def test_tokens_of_words_are_those_of_the_whole_text() -> None:
    pytest.importorskip("wordllama", reason="there is no wheel for this Python")
    model = static_model()
    assert model is not None
    long = "word " * 300
    texts = ["f(x).y == 'z';", "", "a\u2581b\tc \U0001f9ff\u2581", "näïve 漢字 \U0001f9ff", long]
    found = [list(tokens) for tokens in model._tokenize(texts)]
    for text, tokens in zip(texts, found, strict=True):
        plain = text.replace("\u2581", " ")
        whole = model._tokenizer.encode(plain, add_special_tokens=False).ids[:256]
        assert tokens == (whole if plain else [0])


def test_settings_choose_the_model(settings: Settings) -> None:
    assert embedder_of(settings.model_copy(update={"embeddings": "off"})) is None
    url = settings.model_copy(update={"embeddings": "http://127.0.0.1:1/v1"})
    chosen = embedder_of(url)
    assert isinstance(chosen, EndpointModel)
    assert chosen.name == "nomic-embed-text at http://127.0.0.1:1/v1"


def test_pages_are_ordered_by_the_scaled_scores_of_both_rankings() -> None:
    def ranked(**scores: float) -> list[Candidate]:
        return [
            Candidate(ord(name), 0, [0.0], [False], 0, [], False, 0.0, score=score)
            for name, score in scores.items()
        ]

    def order(words: list[Candidate], meaning: list[Candidate], weight: float = 1.0) -> str:
        return "".join(chr(each.document_id) for each in module.fuse(words, meaning, weight))

    # a clearly best page stays first, though others are in both rankings
    assert order(ranked(a=3.0, b=1.2, c=1.0), ranked(d=0.7, b=0.45, c=0.4))[:2] == "ad"
    assert order(ranked(a=3.0, b=2.9, c=1.0), ranked(b=0.7, c=0.4)) == "bac"
    assert order(ranked(a=3.0, b=2.0, c=1.0), ranked(b=0.7, c=0.4), weight=0.4) == "abc"
    # a page alone in its ranking is neither the best nor the worst
    assert order(ranked(a=1.0), ranked(b=0.7, c=0.4, d=0.3)) == "bacd"
