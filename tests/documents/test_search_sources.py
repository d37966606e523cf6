"""Search over several sources: their names, versions and vocabularies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from documents.searching import Look, headings
from forager.db.database import Database
from forager.documents.search.embedding import StaticModel, static_model
from forager.documents.search.rerank import rerank
from forager.documents.search.scopes import RankedGenerations
from forager.documents.search.score import Candidate, SectionPlace, WeightedTerms, tells_changes
from forager.documents.search.semantic import Embedding
from forager.documents.search.tsquery import EMPTY
from forager.documents.store import embeddings
from forager.documents.versions import select_versions
from forager.errors import InvalidInput, NotFound
from forager.settings import Settings
from search_corpus import Corpus, Page

PROCESSES = {"/processes": [("Start a process", "A process starts with spawn.")]}


def sources_of(page: Any) -> list[str]:
    return [hit.source_id for hit in page.items]


# --- the source that a query names ---------------------------------------------------------------


async def test_the_source_that_a_query_names_comes_first(corpus: Corpus, look: Look) -> None:
    await corpus.publish("ada", {"/p": [("Start a process", "As in erlang, with spawn.")]})
    await corpus.publish("erlang", {"/p": [("Processes", "They start with spawn as a process.")]})
    assert sources_of(await look("start process"))[0] == "ada"
    page = await look("start process erlang")
    assert sources_of(page)[0] == "erlang"
    # its name is no word that its sections must have
    assert page.items[0].missing == ()


async def test_a_misspelled_name_of_a_source_is_corrected(corpus: Corpus, look: Look) -> None:
    await corpus.publish("ada", PROCESSES)
    await corpus.publish("erlang", PROCESSES)
    page = await look("start process erlng")
    assert sources_of(page)[0] == "erlang"
    assert "erlng; erlang was assumed" in (page.note or "")


async def test_a_word_that_a_source_uses_is_no_misspelled_name(corpus: Corpus, look: Look) -> None:
    await corpus.publish("forth", PROCESSES)
    await corpus.publish("ada", {"/f": [("Move forward", "Moves a process forward.")]})
    assert (await look("forward process")).note is None


async def test_the_name_of_a_source_alone_finds_its_pages(corpus: Corpus, look: Look) -> None:
    await corpus.publish("erlang", {"/": [("Erlang", "About erlang."), ("Other", "text")]})
    await corpus.publish("ada", PROCESSES)
    assert headings(await look("erlang")) == ["Erlang"]


# --- versions ----------------------------------------------------------------------------------


async def versions(corpus: Corpus, *names: str) -> None:
    for name in names:
        await corpus.publish(name, {f"/{name}": [("Sorting lists", f"Sorts a list in {name}.")]})


async def test_the_newest_version_comes_first_unless_the_query_names_one(
    corpus: Corpus, look: Look
) -> None:
    await versions(corpus, "boost@1.9", "boost@1.81", "boost@1.74")
    assert sources_of(await look("sorting lists"))[0] == "boost@1.81"
    assert sources_of(await look("sorting lists boost 1.74"))[0] == "boost@1.74"
    assert sources_of(await look("boost 1.9 sorting lists"))[0] == "boost@1.9"


async def test_versions_are_filtered_by_a_range(corpus: Corpus, look: Look) -> None:
    await versions(corpus, "boost@1.9", "boost@1.74", "boost@1.81")
    for wanted, expected in {
        "1.74": {"boost@1.74"},
        ">=1.74": {"boost@1.74", "boost@1.81"},
        ">1.9, <1.81": {"boost@1.74"},
        "1.9-1.74": {"boost@1.9", "boost@1.74"},
        "1.x": {"boost@1.9", "boost@1.74", "boost@1.81"},
    }.items():
        page = await look("sorting lists", source="boost", version=wanted)
        assert set(sources_of(page)) == expected, wanted


async def test_a_missing_version_lists_those_that_exist(corpus: Corpus, look: Look) -> None:
    await versions(corpus, "boost@1.10", "boost@1.9")
    with pytest.raises(NotFound) as error:
        await look("sorting lists", source="boost", version="2")
    assert error.value.hint == "Versions: 1.9, 1.10"


def test_a_range_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="not a range"):
        select_versions(["boost@1.9"], ">=1.9,or so")
    assert select_versions(["node@lts"], "lts") == ["node@lts"]


# --- names that a site defines -----------------------------------------------------------------


@pytest.mark.parametrize("query", ["ets:insert_new", "ets:insert_new/2", "ets.insert_new()"])
async def test_a_qualified_name_finds_the_definition_on_the_page_of_that_name(
    corpus: Corpus, look: Look, query: str
) -> None:
    signature = "insert_new(Table, Objects) -> boolean()"
    await corpus.publish(
        "erlang",
        {
            "/notes.html": Page([("Release notes", "ets:insert_new/2 and ets.insert_new.")]),
            "/ets.html": Page([("ets", ""), (signature, "Inserts objects.")], anchor="insert_new"),
            "/dets.html": Page([("dets", ""), (signature, "Stores.")], anchor="insert_new"),
        },
    )
    page = await look(query)
    assert page.items[0].url.startswith("https://erlang/ets.html")
    assert all("dets" not in hit.url for hit in page.items)


async def test_a_page_with_the_name_beats_an_entry_in_a_list(corpus: Corpus, look: Look) -> None:
    declaration = "```\nvoid\ngtk_list_clear (\n  GtkList* list\n)\n```"
    await corpus.publish(
        "gtk",
        {
            "/class.List.html": Page([("List", ""), ("gtk_list_clear", "Clears a list.")]),
            "/method.List.clear.html": Page(
                [("clear", ""), ("Declaration", declaration)], title="Gtk.List.clear"
            ),
        },
    )
    assert (await look("gtk_list_clear")).items[0].title == "Gtk.List.clear"


async def test_an_index_ranks_below_the_definition(corpus: Corpus, look: Look) -> None:
    await corpus.publish(
        "nim",
        {
            "/theindex.html": Page([("newSeqOfCap", "system: newSeqOfCap")], title="Index"),
            "/system.html": Page(
                [("System", ""), ("proc newSeqOfCap[T](cap: Natural): seq[T]", "Creates one.")]
            ),
        },
    )
    assert "system.html" in (await look("newSeqOfCap")).items[0].url


async def test_a_query_that_begins_with_an_option_searches_for_it(
    corpus: Corpus, look: Look
) -> None:
    await corpus.publish(
        "gcc", {"/w": [("-Wall", "Warnings of all kinds.")], "/o": [("Wall", "A wall.")]}
    )
    assert headings(await look("-Wall")) == ["-Wall"]
    page = await look("warnings -Wall")
    assert page.items == []
    assert '"-Wall"' in (page.note or "")


# --- meaning -----------------------------------------------------------------------------------


async def test_a_small_source_is_searched_by_meaning_beside_an_index_of_large_ones(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus(database)
    await corpus.publish(
        "large", {f"/{n}": [(f"Reload connections {n}", "Reload them.")] for n in range(300)}
    )
    await corpus.publish("small", {"/s": [("Restarting", "Starts the server again.")]})
    await Embedding(database, settings.model_copy(update={"embeddings": "auto"})).run()
    monkeypatch.setattr(embeddings, "MANY", 10)
    await database.run(embeddings.create_index_if_large)
    async with database.connection() as connection:
        await connection.execute("SET hnsw.max_scan_tuples = 1")
        model = static_model()
        assert model is not None
        [vector] = await model.embed(["reload the connections"])
        cursor = await connection.execute(
            "SELECT published_generation FROM sources WHERE id='small'"
        )
        [generation] = await cursor.fetchone() or [0]
        found = await embeddings.select_nearest(connection, vector, [generation], None, 5)
    assert len(found) == 1


def candidate(number: int, text: str, url: str = "https://s/") -> Candidate:
    place = SectionPlace(number, 0, "", 1, text, "s", "", url, "en", 0)
    return Candidate(number, 0, [], [], 0, [], False, 0.0, place=place)


def question_about(
    words: str, *texts: str
) -> tuple[list[Candidate], list[RankedGenerations], StaticModel]:
    """Sections with these texts and the words of a question: what is given to the second stage."""
    model = static_model()
    assert model is not None
    texts_of_terms = words.split()
    count = len(texts_of_terms)
    terms = WeightedTerms(texts_of_terms, [""] * count, [1.0] * count, words, "en", "en")
    scope = RankedGenerations("english", [], EMPTY, terms, {"s": terms})
    return [candidate(number, text) for number, text in enumerate(texts)], [scope], model


async def test_sections_with_near_words_come_first() -> None:
    texts = ("Prints a number on a screen.", "Deletes a directory.", "Adds a color.")
    ranked = await rerank(*question_about("remove folder", *texts))
    assert ranked[0].place.beginning == "Deletes a directory."


async def test_words_that_say_little_count_less() -> None:
    texts = ("Several different numbers.", "Deletes a directory.")
    ranked = await rerank(*question_about("several different delete folder", *texts))
    assert ranked[0].place.beginning == "Deletes a directory."


async def test_of_two_sources_the_one_with_several_good_pages_comes_first() -> None:
    texts = ("Deletes a directory.",) * 4
    found, [scope], model = question_about("remove folder", *texts)
    found[0].place = replace(found[0].place, source_id="other")
    for each in found:
        each.score = 0.5
    found[0].score += 0.05
    terms = scope.terms_by_source["s"]
    scopes = [replace(scope, terms_by_source={"s": terms, "other": terms})]
    assert (await rerank(found, scopes, model))[0].place.source_id == "s"


async def test_nothing_to_rerank_is_no_error() -> None:
    model = static_model()
    assert model is not None
    assert await rerank([], [], model) == []


async def test_synonyms_of_documentation_are_near() -> None:
    ranked = await rerank(
        *question_about("boot", "A pair of shoes.", "Runs as a daemon.", "Adds a color.")
    )
    assert ranked[0].place.beginning == "Runs as a daemon."


async def test_a_word_with_another_ending_is_nearer_than_a_synonym() -> None:
    ranked = await rerank(*question_about("retries", "Repeats it.", "Retrying it."))
    assert ranked[0].place.beginning == "Retrying it."


@pytest.mark.parametrize(
    ("url", "is_about_changes"),
    [
        ("https://s/community/3.0-announcement/", True),
        ("https://s/relnotes.html", True),
        ("https://s/whatsnew/changelog.html", True),
        ("https://s/guide/releasing.html", False),
        ("https://s/api-guide/versioning/", False),
    ],
)
def test_pages_about_changes_are_known_by_their_address(url: str, is_about_changes: bool) -> None:
    assert tells_changes(candidate(0, "", url)) == is_about_changes


@pytest.mark.parametrize("query", ["cherry pick", "git cherry-pick"])
async def test_the_name_of_the_site_is_no_part_of_the_name_of_a_page(
    corpus: Corpus, look: Look, query: str
) -> None:
    short = {"/shortlog": Page([("git-shortlog", "Lists."), ("--cherry-pick", "A cherry pick.")])}
    page = {
        "/git-cherry-pick": Page([("NAME", "Cherry-pick commits.")], title="git-cherry-pick(1)")
    }
    await corpus.publish("git", short | page)
    assert (await look(query)).items[0].url.startswith("https://git/git-cherry-pick")


async def test_options_are_for_queries_that_name_them(corpus: Corpus, look: Look) -> None:
    await corpus.publish(
        "db",
        {
            "/dump": [
                ("dump", "A tool."),
                ("--on-conflict-do-nothing", "Adds on conflict do nothing."),
            ],
            "/insert": [("ON CONFLICT clause", "On conflict, do nothing, or update.")],
        },
    )
    assert (await look("on conflict do nothing")).items[0].url == "https://db/insert#part-0"
    for query in ("--on-conflict-do-nothing", "on-conflict-do-nothing"):
        assert headings(await look(query))[0] == "--on-conflict-do-nothing"
