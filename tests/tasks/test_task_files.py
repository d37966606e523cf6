"""Files of URLs to track: formats, bad lines, and what is skipped."""

from __future__ import annotations

import io

import orjson
import pytest

from forager.errors import InvalidInput
from forager.tasks.imports import MAX_LINE, FileFormat, read_requests
from forager.tasks.tracking_request import BadLine, RequestedTerms, TrackRequest
from tasks.request_files import HOUR, bad, good, read

LAMP = [("https://a.example/1", RequestedTerms(2, 6 * HOUR, 0.5))]


@pytest.mark.parametrize(
    "content",
    [
        b"url,priority,every,popularity\nhttps://a.example/1,2,6h,0.5\n",
        b"\xef\xbb\xbfurl,priority,every,popularity\r\nhttps://a.example/1,2,6h,0.5\r\n",
        b'\n\n"Every";"URL";"Priority";"Stock";"Popularity"\n6h;https://a.example/1;2;yes;0.5',
        b"url\tpriority\tevery\tpopularity\nhttps://a.example/1\t2\t6h\t0.5\n",
    ],
)
def test_the_header_of_a_csv_file_names_its_columns(content: bytes) -> None:
    for name in "shop.csv", "SHOP.TSV":
        assert (good(content, name), bad(content, name)) == (LAMP, [])


@pytest.mark.parametrize("first", [b"", b"https://a.example/1,2", b"link,priority", b"\xff,url"])
def test_a_csv_file_without_a_header_is_rejected(first: bytes) -> None:
    with pytest.raises(InvalidInput, match="must name its columns") as caught:
        read(first + b"\nhttps://a.example/1,2\n", "shop.csv")
    assert "--format list" in str(caught.value.hint)


@pytest.mark.parametrize(
    "content",
    [
        b'{"url": "https://a.example/1", "priority": 2, "every": "6h", "popularity": 0.5}\n',
        b'{"url":"https://a.example/1","priority":"2","every":"6h","popularity":"0.5","x":[]}',
    ],
)
def test_json_lines(content: bytes) -> None:
    for name in "shop.jsonl", "shop.ndjson", "shop.json":
        assert (good(content, name), bad(content, name)) == (LAMP, [])


def test_the_format_can_be_given() -> None:
    content = b"url,priority\nhttps://a.example/1,3\n"
    found = list(read_requests(io.BytesIO(content), "-", FileFormat.CSV))
    assert found == [TrackRequest(2, "https://a.example/1", RequestedTerms(3))]
    ((_, reason),) = [
        (one.line, one.reason)
        for one in read_requests(
            io.BytesIO(b'[\n"https://a.example/1"\n'), "-", FileFormat.JSON_LINES
        )
        if isinstance(one, BadLine)
    ]
    assert "one object per line" in str(reason)


def test_a_plain_list_may_have_commas_in_its_urls() -> None:
    content = b"https://a.example/x,y\n  https://a.example/z  \n\n"
    expected = [
        ("https://a.example/x,y", RequestedTerms()),
        ("https://a.example/z", RequestedTerms()),
    ]
    assert good(content) == good(content, "list.txt") == good(content, "urls.lst") == expected


def test_a_url_with_a_tab_in_it_is_rejected() -> None:
    content = b"https://a.example/1\nhttps://a.example/2\t3\n"
    assert good(content) == [("https://a.example/1", RequestedTerms())]
    assert [line for line, _ in bad(content)] == [2]
    assert bad(b'{"url": "https://a.example/1\\n2"}', "a.jsonl") != []


def test_omitted_values_are_not_set() -> None:
    assert good(b"url,priority\nhttps://a.example/1,\nhttps://a.example/2,3\n", "a.csv") == [
        ("https://a.example/1", RequestedTerms()),
        ("https://a.example/2", RequestedTerms(3)),
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
    assert good(content, "a.csv") == [("https://a.example/5", RequestedTerms(1, 6 * HOUR))]
    lines, reasons = zip(*bad(content, "a.csv"), strict=True)
    assert lines == (2, 3, 4, 5, 6, 7, 8)
    words = ("priority", "priority", "duration", "no URL", "columns", "UTF-8", "NUL")
    assert all(word in reason for word, reason in zip(words, reasons, strict=True))


def test_bad_lines_of_json() -> None:
    content = b'{"url": "https://a.example/1"}\n{"url": 3}\n[1]\n{\n{"url":"x","popularity":"NaN"}'
    assert len(good(content, "a.jsonl")) == 1
    assert [line for line, _ in bad(content, "a.jsonl")] == [2, 3, 4, 5]


def test_comments_are_skipped() -> None:
    content = b"# a shop\nurl,priority\n  # and its lamps\nhttps://a.example/1,2\n"
    assert good(content, "a.csv") == [("https://a.example/1", RequestedTerms(2))]
    listed = b"#https://a.example/0\nhttps://a.example/1#top\n"
    assert (
        good(listed) == good(listed, "list.txt") == [("https://a.example/1#top", RequestedTerms())]
    )
    assert bad(listed) == []


def test_names_that_are_nearly_known() -> None:
    for header in (b"url,prority", b"URL;Every;Popularty"):
        with pytest.raises(InvalidInput, match="did you mean"):
            read(header + b"\nhttps://a.example/1,2\n", "a.csv")
    content = b'{"url": "https://a.example/1", "prioirty": 1}\n{"URL": "https://a.example/2"}\n'
    assert [reason.partition(": ")[2] for _, reason in bad(content, "a.jsonl")] == [
        "did you mean 'priority'?",
        "did you mean 'url'?",
    ]
    others = b'{"url": "https://a.example/1", "urls": [], "stock": 3, "name": "x"}'
    assert bad(others, "a.jsonl") == bad(b"url,urls,brand\nhttps://a.example/1,,x\n", "a.csv") == []


@pytest.mark.parametrize("name", ["delivery", "rarity", "similarity", "priorities", "prior"])
def test_names_of_others_are_not_taken_for_ours(name: str) -> None:
    assert good(f"url,{name}\nhttps://a.example/1,2\n".encode(), "a.csv") == [
        ("https://a.example/1", RequestedTerms())
    ]
    assert good(orjson.dumps({"url": "https://a.example/1", name: 2}), "a.jsonl") == [
        ("https://a.example/1", RequestedTerms())
    ]


@pytest.mark.parametrize("name", ["evry", "everyy", "evera", "pirority", "popularitiy", "Every "])
def test_mistakes_are_reported(name: str) -> None:
    ((_, reason),) = bad(orjson.dumps({"url": "https://a.example/1", name: 2}), "a.jsonl")
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
