"""The page of results is drawn from data, and keeps what was not measured again."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import bench, report
from benchmarks.measured import number_in, read_measured
from benchmarks.overview import write_overview
from benchmarks.parts import PARTS, Part, chosen

MACHINE = [("date", "2026-11-15 10:13 UTC"), ("load average at the start", "0.9")]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "DATA", tmp_path / "data")
    return tmp_path


def write_report(name: str, heading: str, head: list[str], rows: list[list[str]]) -> None:
    page = report.Report(f"About {name}")
    page.table(("machine", ""), MACHINE)
    page.heading(heading)
    page.table(head, rows)
    page.write(f"{name}.md")


def test_a_report_leaves_its_tables_as_data(results: Path) -> None:
    write_report(
        "queue", "Jobs per second", ["what", "1,000 rows"], [["claim one by one", "1,364"]]
    )
    found = read_measured(results / "data", "queue")
    assert found is not None
    assert (found.title, found.page, found.date) == ("About queue", "queue.md", MACHINE[0][1])
    assert found.cell("claim one", "1,000 rows") == "1,364"
    assert found.cell("claim one", "no such column") is None
    assert "| claim one by one |" in (results / "queue.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,168", 1168), ("2.85x", 2.85), ("1.6 ms", 1.6), ("-", None), ("", None), (None, None)],
)
def test_numbers_are_read_out_of_cells(text: str | None, number: float | None) -> None:
    assert number_in(text) == number


def test_ratios_are_against_each_peer(results: Path) -> None:
    rows = [["Forager, full job (all)", "300"], ["Scrapy, JOBDIR", "150"],
            ["Scrapy, JOBDIR, markdown", "100"], ["the limit (in memory)", "3,000"]]  # fmt: skip
    write_report("crawl", "a site", ["crawler", "pages/s"], rows)
    page = write_overview(results).read_text(encoding="utf-8")
    [line] = [line for line in page.splitlines() if line.startswith("| Forager, full job")]
    assert [cell.strip() for cell in line.split("|")[2:-1]] == [
        "300",
        "2.00x",
        "3.00x",
        "",
        "0.10x",
    ]


def test_the_aim_is_a_budget_of_processor_time(results: Path) -> None:
    page = report.Report("Crawls")
    page.table(("machine", ""), [*MACHINE, ("processor", "AMD EPYC, 2 cores")])
    page.heading("a site")
    rates = [["Forager, full job (all)", "300"], ["Scrapy, JOBDIR, markdown", "100"]]
    page.table(["crawler", "pages/s"], rates)
    parts = ["runner", "extraction", "PostgreSQL"]
    page.table(["crawl", *parts], [["Forager, full job (all)", "1.00", "2.00", "1.00"]])
    page.write("crawl.md")
    inside = [["markdown", "0.60"], ["all", "2.00"]]
    write_report("documents", "Reading a page", ["part", "ms per page"], inside)
    text = write_overview(results).read_text(encoding="utf-8")
    # ten times 100 pages/s on two cores
    assert "leaves 2.00 ms of processor time" in text
    assert "A page of the full job takes 4.00 ms, so that 500 pages/s, 5.0 times Scrapy" in text
    [line] = [line for line in text.splitlines() if line.startswith("| · markdown")]
    assert [cell.strip() for cell in line.split("|")[2:-1]] == ["0.60", "30%"]


def test_there_is_nothing_to_explain_once_the_aim_is_reached(results: Path) -> None:
    page = report.Report("Crawls")
    page.table(("machine", ""), [*MACHINE, ("processor", "AMD EPYC, 2 cores")])
    page.heading("a site")
    page.table(["crawler", "pages/s"], [["Scrapy, JOBDIR, markdown", "10"]])
    parts = ["runner", "extraction", "PostgreSQL"]
    page.table(["crawl", *parts], [["Forager, full job (all)", "1.00", "2.00", "1.00"]])
    page.write("crawl.md")
    assert "Why not" not in write_overview(results).read_text(encoding="utf-8")


def test_a_quick_run_says_that_its_numbers_count_for_nothing(results: Path) -> None:
    assert "say nothing" in write_overview(results, quick=True).read_text(encoding="utf-8")


def test_curves_are_drawn_from_the_data(results: Path) -> None:
    rows = [["1,000", "0.75", "1.70"], ["1,000,000", "0.83", "1.75"]]
    head = ["pending jobs", "one job", "20 jobs"]
    write_report("queue", "A claim against the length of the queue", head, rows)
    page = write_overview(results).read_text(encoding="utf-8")
    assert "(claim.svg)" in page
    drawn = (results / "claim.svg").read_text(encoding="utf-8")
    assert "one job: 0.75 at 1,000, 0.83 at 1,000,000" in drawn


def test_a_part_that_fails_keeps_its_older_numbers(results: Path) -> None:
    write_report("search", "Searches", ["what", "median", "p90"], [["an identifier", "13.0", "28"]])
    run = bench.run_part(Part("search", "no_such_module", "search", 1), results, quick=False)
    bench.remember(results, "search", run)
    bench.remember(results, "queue", bench.Run("today", 1, 0, 0, 0))
    page = write_overview(results).read_text(encoding="utf-8")
    assert "13.0 / 28 ms" in page
    assert MACHINE[0][1] in page
    assert f"ended with code 1 ({run.date})" in page


def test_parts_are_chosen_by_name() -> None:
    assert [part.name for part in chosen("crawl, queue")] == ["queue", "crawl"]
    assert chosen("") == [*PARTS]
    with pytest.raises(SystemExit, match="no such part: dust"):
        chosen("dust")


def test_all_of_it_fits_into_forty_minutes() -> None:
    assert sum(part.minutes for part in PARTS) < 40
