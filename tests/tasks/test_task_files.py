"""Files of URLs to track: formats, bad lines, and what is skipped."""

from __future__ import annotations

import io

import orjson
import pytest

from forager.errors import InvalidInput
from forager.tasks.imports import MAX_LINE, read_requests
from forager.tasks.tracking_request import BadLine, Terms, TrackRequest
from tasks.request_files import HOUR, bad, good, read


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


def test_omitted_values_are_not_set() -> None:
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
