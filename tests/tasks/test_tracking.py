from __future__ import annotations

import asyncio
import io
from datetime import timedelta

import orjson
import pytest

from forager.db.database import Database
from forager.errors import InvalidInput
from forager.fetch.domains.store import allow_private
from forager.settings import Settings
from forager.tasks.imports import MAX_LINE, read_requests
from forager.tasks.service import Tasks
from forager.tasks.tracking import FoundProduct, Tracked, track_found
from forager.tasks.tracking_request import BadLine, Terms, TrackRequest
from support.waiting import lock_waited_for
from tasks.tasks_at_hand import execute, make_domain, value

HOUR = timedelta(hours=1)


@pytest.fixture
def tasks(database: Database, settings: Settings) -> Tasks:
    return Tasks(database, settings)


def read(content: bytes, name: str = "") -> list[TrackRequest | BadLine]:
    return list(read_requests(io.BytesIO(content), name))


def good(content: bytes, name: str = "") -> list[tuple[str, Terms]]:
    return [(one.url, one.terms) for one in read(content, name) if isinstance(one, TrackRequest)]


def bad(content: bytes, name: str = "") -> list[tuple[int, str]]:
    return [(one.line, str(one.reason)) for one in read(content, name) if isinstance(one, BadLine)]


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"url,priority,every,popularity\nhttps://a.example/1,2,6h,0.5\n",
        b"\xef\xbb\xbfurl,priority,every,popularity\r\nhttps://a.example/1,2,6h,0.5\r\n",
        b'"Every";"URL";"Priority";"Stock";"Popularity"\n6h;https://a.example/1;2;yes;0.5',
        b"url\tpriority\tevery\tpopularity\nhttps://a.example/1\t2\t6h\t0.5\n",
        b"\n\nhttps://a.example/1,2,6h,0.5\n",
        b'"https://a.example/1","2","6h","0.5"\n',
        b"https://a.example/1\t2\t6h\t0.5\n",
        b'{"url": "https://a.example/1", "priority": 2, "every": "6h", "popularity": 0.5}\n',
        b'{"url":"https://a.example/1","priority":"2","every":"6h","popularity":"0.5","x":[]}',
    ],
)
def test_formats_are_distinguished(content: bytes) -> None:
    assert good(content) == [("https://a.example/1", Terms(2, 6 * HOUR, 0.5))]
    assert bad(content) == []


def test_a_plain_list_may_have_commas_in_its_urls() -> None:
    content = b"https://a.example/x,y\n  https://a.example/z  \n\n"
    expected = [("https://a.example/x,y", Terms()), ("https://a.example/z", Terms())]
    assert good(content) == good(content, "list.txt") == expected


def test_rows_without_a_header_are_divided_by_what_divides_the_first() -> None:
    expected = [("https://a.example/1", Terms(3)), ("https://a.example/2", Terms(4))]
    for divider in b",", b";", b"\t":
        content = b"https://a.example/1%b3\nhttps://a.example/2%b4\n" % (divider, divider)
        assert good(content, "shop.csv") == expected


def test_a_url_is_never_glued_together_from_what_a_tab_divides() -> None:
    content = b"https://a.example/1\nhttps://a.example/2\t3\n"
    for name in "", "shop.csv", "shop.txt":
        assert good(content, name) == [("https://a.example/1", Terms())]
        assert [line for line, _ in bad(content, name)] == [2]
    assert bad(b'{"url": "https://a.example/1\\n2"}') != []


def test_what_is_left_out_is_not_given() -> None:
    assert good(b"url,priority\nhttps://a.example/1,\nhttps://a.example/2,3\n") == [
        ("https://a.example/1", Terms()),
        ("https://a.example/2", Terms(3)),
    ]


def test_bad_lines_say_where_and_why() -> None:
    content = (
        b"url,priority,every\n"
        b"https://a.example/1,11,\n"
        b"https://a.example/2,high,\n"
        b"https://a.example/3,,soon\n"
        b",1,6h\n"
        b'"https://a.example/4,1,6h\n'
        b"https://a.example/\xff,1,6h\n"
        b"https://a.example/\x00,1,6h\n"
        b"https://a.example/5,1,6h\n"
    )
    assert good(content) == [("https://a.example/5", Terms(1, 6 * HOUR))]
    lines, reasons = zip(*bad(content), strict=True)
    assert lines == (2, 3, 4, 5, 6, 7, 8)
    words = ("priority", "priority", "duration", "no URL", "columns", "UTF-8", "NUL")
    assert all(word in reason for word, reason in zip(words, reasons, strict=True))


def test_bad_lines_of_json() -> None:
    content = b'{"url": "https://a.example/1"}\n{"url": 3}\n[1]\n{\n{"url":"x","popularity":"NaN"}'
    assert len(good(content)) == 1
    assert [line for line, _ in bad(content)] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "content",
    [
        b'["https://a.example/1", {"url": "https://a.example/2", "priority": 3}]',
        b'\xef\xbb\xbf\n[\n "https://a.example/1",\n'
        b' {"url": "https://a.example/2",\n  "priority": 3}\n]\n',
        b'# two\n["https://a.example/1"\n,{"priority":3,"url":"https://a.example/2"}]  \n\n',
    ],
)
def test_a_json_array_is_read_entry_by_entry(content: bytes) -> None:
    expected = [("https://a.example/1", Terms()), ("https://a.example/2", Terms(3))]
    assert good(content) == good(content, "list.json") == expected
    assert bad(content) == []


def test_a_long_array_in_one_line_is_read_in_pieces() -> None:
    entries = [{"url": f"https://a.example/é{n}", "priority": n % 10} for n in range(20_000)]
    for content in (orjson.dumps(entries), orjson.dumps(entries, option=orjson.OPT_INDENT_2)):
        assert len(content) > MAX_LINE
        largest, found = 0, 0
        stream = io.BytesIO(content)
        before = 0
        for one in read_requests(stream, "list.json"):
            assert isinstance(one, TrackRequest)
            largest, before = max(largest, stream.tell() - before), stream.tell()
            found += 1
        assert (found, largest <= MAX_LINE) == (20_000, True)


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        (b"", "ends before its bracket"),
        (b',{"url": "https://a.example/2"', "not JSON"),
        (b", nonsense]", "not JSON"),
        (b" 3]", "no comma"),
        (b"] []", "after the end"),
        (b',"\xff"]', "not UTF-8"),
        (b"," + b"[" * 100_000, "too deeply"),
        (b',"' + b"x" * (3 * MAX_LINE) + b'"]', "longer than"),
        (b"," + b"9" * 5_000 + b"]", "digits"),
    ],
)
def test_a_broken_array_keeps_what_came_before(rest: bytes, words: str) -> None:
    content = b'["https://a.example/1"\n' + rest
    assert good(content, "list.json") == [("https://a.example/1", Terms())]
    (*_, (line, reason)) = bad(content, "list.json")
    assert (line, words in reason) == (2, True), reason


def test_entries_of_an_array_that_ask_for_nothing() -> None:
    content = b'[1,\n null,\n {"url": "https://a.example/1"},\n {}, []]'
    assert len(good(content)) == 1
    assert [line for line, _ in bad(content)] == [1, 2, 4, 4]
    assert read(b"[]") == read(b"[ ]\n") == []


def test_comments_are_skipped() -> None:
    assert good(b"# a shop\nurl,priority\n  # and its lamps\nhttps://a.example/1,2\n") == [
        ("https://a.example/1", Terms(2))
    ]
    listed = b"#https://a.example/0\nhttps://a.example/1#top\n"
    assert good(listed) == good(listed, "list.txt") == [("https://a.example/1#top", Terms())]
    assert bad(listed) == []


def test_names_that_are_nearly_known() -> None:
    for header in (b"url,prority", b"ulr,priority", b"URL;Every;Popularty"):
        with pytest.raises(InvalidInput, match="did you mean"):
            read(header + b"\nhttps://a.example/1,2\n")
    content = b'{"url": "https://a.example/1", "prioirty": 1}\n{"URL": "https://a.example/2"}\n'
    assert [reason.partition(": ")[2] for _, reason in bad(content)] == [
        "did you mean 'priority'?",
        "did you mean 'url'?",
    ]
    others = b'{"url": "https://a.example/1", "urls": [], "stock": 3, "name": "x"}'
    assert bad(others) == bad(b"url,urls,brand\nhttps://a.example/1,,x\n") == []


@pytest.mark.parametrize("name", ["delivery", "rarity", "similarity", "priorities", "prior"])
def test_names_of_others_are_not_taken_for_ours(name: str) -> None:
    assert good(f"url,{name}\nhttps://a.example/1,2\n".encode()) == [
        ("https://a.example/1", Terms())
    ]
    assert good(orjson.dumps({"url": "https://a.example/1", name: 2})) == [
        ("https://a.example/1", Terms())
    ]


@pytest.mark.parametrize("name", ["evry", "everyy", "evera", "pirority", "popularitiy", "Every "])
def test_mistakes_are_reported(name: str) -> None:
    ((_, reason),) = bad(orjson.dumps({"url": "https://a.example/1", name: 2}))
    assert "did you mean" in reason


def test_a_line_without_end_is_skipped() -> None:
    content = b"https://a.example/1\n" + b"x" * (2 * MAX_LINE) + b"\nhttps://a.example/2\n"
    assert [url for url, _ in good(content)] == ["https://a.example/1", "https://a.example/2"]
    ((line, reason),) = bad(content)
    assert (line, "longer than" in reason) == (2, True)


def test_binary_junk_is_bad_line_by_line() -> None:
    junk = bytes(range(1, 256)) * 40
    assert all(isinstance(one, BadLine) for one in read(junk, "junk.jsonl"))
    with pytest.raises(InvalidInput, match="UTF-16"):
        read("url\nhttps://a.example/1".encode("utf-16"))


def test_an_empty_file_asks_for_nothing() -> None:
    assert read(b"") == read(b"\xef\xbb\xbf") == read(b"\n\r\n \n") == []


# --- tracking ---------------------------------------------------------------------------------


async def row(database: Database, column: str, url: str) -> object:
    return await value(database, f"SELECT {column} FROM crawl_tasks WHERE url = %s", url)


async def test_new_urls_become_tasks_under_their_one_spelling(
    database: Database, tasks: Tasks
) -> None:
    tracked = await tasks.track(
        ["HTTPS://Shop.example/a?utm_source=x#top", "https://shop.example/a", "https://b.example"],
        every=6 * HOUR,
        priority=8,
    )
    assert (tracked.added, tracked.known, tracked.bad) == (2, 1, 0)
    assert await row(database, "crawl_frequency", "https://shop.example/a") == 6 * HOUR
    assert await row(database, "priority", "https://b.example/") == 2
    assert await row(database, "status", "https://b.example/") == "pending"
    assert await row(database, "scheduled_at <= now()", "https://b.example/")
    assert await value(database, "SELECT count(*) FROM domains") == 2


async def test_a_higher_priority_is_stored_as_a_lower_number(
    database: Database, tasks: Tasks
) -> None:
    for priority, stored in ((9, 1), (5, 5), (0, 10)):
        url = f"https://shop.example/{priority}"
        await tasks.track([url], priority=priority)
        assert await row(database, "priority", url) == stored
        assert (await tasks.get(url)).priority == priority


async def test_tracking_again_changes_only_what_is_given(database: Database, tasks: Tasks) -> None:
    url = "https://shop.example/a"
    await tasks.track([url], every=HOUR, priority=2, popularity=7)
    again = await tasks.track([url])
    assert (again.added, again.known, again.updated) == (0, 1, 0)
    assert (await tasks.track([url], priority=3)).updated == 1
    assert await row(database, "(priority, crawl_frequency, popularity)::text", url) == (
        "(7,01:00:00,7)"
    )


async def test_a_url_that_is_named_twice_keeps_what_either_says(
    database: Database, tasks: Tasks
) -> None:
    content = (
        b"url,priority,every\n"
        b"https://shop.example/p,1,6h\n"
        b"https://shop.example/p,8,\n"
        b"https://shop.example/p,,\n"
    )
    tracked = await tasks.track_requests(
        read_requests(io.BytesIO(content), "twice.csv"), terms=Terms(priority=7)
    )
    assert (tracked.added, tracked.known) == (1, 2)
    assert await value(database, "SELECT priority FROM crawl_tasks") == 2
    assert await value(database, "SELECT crawl_frequency FROM crawl_tasks") == 6 * HOUR


async def test_a_new_interval_counts_from_the_last_visit(database: Database, tasks: Tasks) -> None:
    url = "https://shop.example/a"
    await tasks.track([url])
    await execute(
        database,
        """
        UPDATE crawl_tasks
           SET status = 'completed', completed_at = now(), next_crawl_at = now() + interval '1 day',
               adapted_frequency = interval '1 day'
        """,
    )
    await tasks.track([url], every=HOUR)
    assert await row(database, "next_crawl_at - completed_at", url) == HOUR
    assert await row(database, "adapted_frequency", url) is None


async def test_the_nearest_domain_covers_a_host(database: Database, tasks: Tasks) -> None:
    own = await make_domain(database, "eu.shop.example")
    await tasks.track(
        [
            "https://www.shop.example/1",
            "https://shop.example/2",
            "https://eu.shop.example/3",
            "https://a.eu.shop.example/4",
        ]
    )
    assert await value(database, "SELECT array_agg(domain_name ORDER BY 1) FROM domains") == [
        "eu.shop.example",
        "shop.example",
    ]
    assert await row(database, "domain_id", "https://a.eu.shop.example/4") == own
    assert await row(database, "domain_id", "https://www.shop.example/1") == await row(
        database, "domain_id", "https://shop.example/2"
    )


async def test_private_hosts_need_a_word(database: Database, tasks: Tasks) -> None:
    private = ["http://localhost:8000/a", "http://10.1.2.3/", "http://[::1]/", "http://x.internal/"]
    refused = await tasks.track([*private, "https://shop.example/"])
    assert (refused.added, refused.bad) == (1, 4)
    assert all("--allow-private" in str(one.reason) for one in refused.first_bad)
    assert await value(database, "SELECT count(*) FROM domains") == 1
    allowed = await tasks.track(private, allow_private=True)
    assert allowed.added == 4
    assert await value(database, "SELECT count(*) FROM domains WHERE allow_private") == 4
    # a host that was allowed stays so
    assert (await tasks.track(["http://localhost:8000/b"])).added == 1
    metadata = await tasks.track(["http://169.254.169.254/"], allow_private=True)
    assert metadata.bad == 1


async def test_private_hosts_are_allowed_in_the_order_of_their_rows(database: Database) -> None:
    first, second = [await make_domain(database, f"{name}.internal") for name in ("a", "b")]
    # behind the other in the table
    await execute(database, "UPDATE domains SET updated_at = now() WHERE id = %s", first)
    async with database.transaction() as holding:
        await holding.execute("SELECT FROM domains WHERE id = %s FOR UPDATE", (first,))

        async def allow() -> None:
            async with database.transaction() as connection:
                # as a plan may be: in the order of the table
                await connection.execute("SET LOCAL enable_indexscan = off")
                await connection.execute("SET LOCAL enable_bitmapscan = off")
                await allow_private(connection, [second, first])

        allowing = asyncio.ensure_future(allow())
        await lock_waited_for(database)
        # a transaction that waits for the first row holds no later one
        await execute(database, "SELECT FROM domains WHERE id = %s FOR UPDATE NOWAIT", second)
    await allowing
    assert await value(database, "SELECT count(*) FROM domains WHERE allow_private") == 2


async def test_a_file_keeps_what_is_good(database: Database, tasks: Tasks) -> None:
    lines = [b"url,priority"]
    lines += [b"https://shop%d.example/%d,%d" % (n % 40, n, n % 10) for n in range(12_000)]
    lines[500] = b"ftp://shop.example/x,5"
    lines[11_000] = b"not a url,5"
    seen: list[BadLine] = []
    tracked: Tracked = await tasks.track_requests(
        read_requests(io.BytesIO(b"\n".join(lines))), terms=Terms(), on_bad=seen.append
    )
    assert (tracked.added, tracked.known, tracked.bad) == (11_998, 0, 2)
    assert [one.line for one in tracked.first_bad] == [501, 11_001]
    assert seen == tracked.first_bad
    assert await value(database, "SELECT count(*) FROM crawl_tasks") == 11_998
    # one time for all, so that popularity decides between them
    assert await value(database, "SELECT count(DISTINCT scheduled_at) FROM crawl_tasks") == 1


async def test_pages_that_a_crawl_found(database: Database, tasks: Tasks) -> None:
    await tasks.track(["https://shop.example/1"], priority=9)
    found = [
        FoundProduct("https://shop.example/1"),
        FoundProduct("https://shop.example/2#reviews"),
        FoundProduct("https://shop.example/2"),
        FoundProduct("http://127.0.0.1:8000/3"),
        FoundProduct("http://127.0.0.1:8001/4", allow_private=True),
        FoundProduct("mailto:x@y.example"),
    ]
    async with database.transaction() as connection:
        assert await track_found(connection, found, "crawl of shop.example") == 2
    async with database.transaction() as connection:
        assert await track_found(connection, found, "crawl of shop.example") == 0
        assert await track_found(connection, [], "nothing") == 0
    assert await row(database, "priority", "https://shop.example/1") == 1
    assert await row(database, "found_by", "https://shop.example/2") == "crawl of shop.example"
    assert await row(database, "priority", "http://127.0.0.1:8001/4") == 5


@pytest.mark.parametrize(
    "terms",
    [{"priority": -1}, {"priority": 10}, {"every": timedelta(0)}, {"popularity": float("inf")}],
)
async def test_terms_that_cannot_be(tasks: Tasks, terms: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        await tasks.track(["https://shop.example/"], **terms)  # type: ignore[arg-type]


async def test_a_visit_is_scheduled_for_a_time_with_its_own_retries(
    tasks: Tasks, database: Database
) -> None:
    [(url, terms)] = good(
        b"url,priority,every,popularity,at,max_retries\n"
        b"https://a.example/1,,,,2030-01-02T03:04:00+00:00,7\n"
    )
    await tasks.track([url], at=terms.at, max_retries=terms.max_retries)
    row = "scheduled_at = '2030-01-02 03:04+00' AND max_retries = 7"
    assert await value(database, f"SELECT {row} FROM crawl_tasks")
    # tracked again: only what is given changes
    assert terms.at is not None
    await tasks.track([url], at=terms.at + HOUR)
    row = "scheduled_at = '2030-01-02 04:04+00' AND max_retries = 7"
    assert await value(database, f"SELECT {row} FROM crawl_tasks")
    assert bad(b'{"url": "https://a.example/1", "at": "soon"}') == [(1, "'soon' is not a time")]
