"""Groups of options declared once, and the helpers that show answers."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Annotated

import pytest
import typer
from pydantic import BaseModel, Field
from typer.testing import CliRunner

from forager.cli import output
from forager.cli.model_flags import ModelFlags
from forager.cli.options import grouped, option
from forager.cli.steps import Steps
from forager.db.cursor import Page
from support.cli import forager

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class Selection:
    ids: Annotated[list[int] | None, typer.Argument(metavar="[ID]...")] = None
    domain: str | None = option("Only this domain.", metavar="HOST")
    everything: bool = option("All of them.", "--all", default=False)


@app.command()
@grouped
def pick(chosen: Selection, *, as_json: bool = False) -> None:
    """Pick some."""
    typer.echo(f"{chosen} {as_json}")


def test_a_group_becomes_options_of_the_command() -> None:
    result = CliRunner().invoke(app, ["7", "8", "--domain", "shop.example", "--as-json"])
    chosen = Selection([7, 8], "shop.example", everything=False)
    assert result.output == f"{chosen} True\n"


def test_the_help_of_a_group_is_that_of_its_fields() -> None:
    text = CliRunner().invoke(app, ["--help"]).output
    assert "Pick some." in text
    assert "--domain" in text
    assert "Only this domain." in text
    assert "--all" in text


def test_options_that_are_not_given_have_their_defaults() -> None:
    assert CliRunner().invoke(app, []).output == f"{Selection(None, None, False)} False\n"


def test_a_table_is_declared_by_its_headings(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_table("ID>, NAME…, URL~", [(7, "lamp", None), (10, ("desk", "bold"), "x")])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["ID  NAME  URL", " 7  lamp", "10  desk  x"]


def test_a_column_may_be_left_out_if_it_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    columns: output.Columns = {"ID>": "id", "NOTE?": "note"}
    output.show_rows(columns, [SimpleNamespace(id=7, note=None)])
    output.show_rows(columns, [SimpleNamespace(id=7, note=None), SimpleNamespace(id=8, note="x")])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["ID", " 7", "ID  NOTE", " 7", " 8  x"]


class Changes(BaseModel):
    delay: float | None = Field(default=None, description="Delay.")
    region: str | None = None
    urls: list[str] = []
    kept: bool = True


flags = typer.Typer()


@flags.command()
@grouped
def change(
    context: typer.Context,
    wanted: Annotated[Changes, ModelFlags(Changes, removable=("delay", "region"), urls="--url")],
) -> None:
    typer.echo(f"{wanted.model_dump(exclude_unset=True)} {context.info_name}")


def test_a_model_becomes_flags_of_the_command() -> None:
    assert CliRunner().invoke(flags, []).output == "{} change\n"
    given = CliRunner().invoke(flags, ["--delay", "1.5", "--region", "default", "--no-kept"])
    assert given.output == "{'delay': 1.5, 'region': None, 'kept': False} change\n"
    repeated = CliRunner().invoke(flags, ["--url", "a", "--url", "b"])
    assert repeated.output == "{'urls': ['a', 'b']} change\n"
    refused = CliRunner().invoke(flags, ["--delay", "soon"]).exception
    assert "--delay needs a number or `default`" in str(refused)
    text = CliRunner().invoke(flags, ["--help"]).output
    assert "N|default" in text
    assert "Delay." in text


def test_facts_without_a_value_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_facts({"id": 7, "note": "", "owner": None, "count": 0})
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["id     7", "count  0"]


def test_a_list_names_the_next_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = Page([1, 2], "next")
    output.show_list(page, False, lambda items: print(*items), none="nothing")
    shown = capsys.readouterr()
    assert shown.out == "1 2\n"
    assert "--cursor next" in shown.err


def test_an_empty_list_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_list(Page([], None), False, lambda items: print(*items), none="nothing here")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "nothing here\n")


def test_a_list_for_programs_has_documents(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    output.show_list(Page([1], None), True, print, document=lambda item: {"id": item})
    assert json.loads(capfdbinary.readouterr().out) == {"items": [{"id": 1}], "next_cursor": None}


def test_amounts_stay_exact_and_intervals_are_seconds() -> None:
    assert output.plain({"price": Decimal("49.9000"), "every": timedelta(hours=6)}) == {
        "price": "49.90",
        "every": 21600.0,
    }


def test_progress_off_a_terminal_is_a_line_at_times(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr("forager.cli.steps.PLAIN_INTERVAL", 0.0)
    with Steps("pages") as steps, Steps("hidden", 2, shown=False) as hidden:
        steps.show(3)
        steps.show(4, total=9)
        steps.advance(1)
        hidden.show(1)
    assert stderr.getvalue() == "pages: 3\npages: 4 of 9\npages: 5 of 9\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("export a1 --format markdown --body", "--body is for jsonl"),
        ("export a1 --generation 1", "--generation is for markdown"),
        ("export a1 --format warc --body", "a WARC file holds the responses"),
        ("domains resolve a.example maybe", "'accept', 'discard'"),
        ("domains set a.example", "nothing to set"),
        ("tasks pause", "no tasks were selected"),
        ("dead-letters retry", "no dead letter was selected"),
        ("tasks set 1", "nothing to set"),
        ("products list --min-price cheap", "is not a number"),
        ("sources apply nowhere.yaml", "nowhere.yaml cannot be read"),
    ],
)
def test_options_are_checked_before_the_database_is_opened(arguments: str, words: str) -> None:
    nowhere = "postgresql://user@127.0.0.1:1/nothing"
    refused = forager(*arguments.split(), FORAGER_DATABASE_URL=nowhere)
    assert refused.code == 2, refused.err
    assert words in refused.err
