"""Sources declared in a file: planned, applied once, and changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from forager.crawl.declared import read_source_file
from support.cli import Finished, forager

pytestmark = pytest.mark.usefixtures("command_line")

HOW_TO = Path(__file__).parents[2] / "docs" / "howto" / "give-your-agent-documentation.md"
YAML = """
sources:
  - name: python
    version: 3.10
    url: https://docs.python.example/3.13/
    schedule: 1d
    exclude: ["*/genindex*"]
  - name: sqlite
    url: https://sqlite.example/
    schedule: "30 4 * * 1"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sources.yaml"
    path.write_text(YAML)
    return path


def shown(source: str) -> Any:
    return forager("sources", "show", source, "--json").json


def test_a_file_is_applied_once(file: Path) -> None:
    plan = forager("sources", "apply", "--dry-run").out
    assert plan.startswith("+ python@3.10 (create)")
    assert "    schedule: every 86400 s\n" in plan
    refused = forager("sources", "apply")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert forager("sources", "list", "--json").json["items"] == []

    applied = forager("sources", "apply", "--yes", "--json").json
    assert [each["action"] for each in applied] == ["create", "create"]
    python = shown("python@3.10")
    assert python["active_job"] == applied[0]["job_id"]
    assert python["payload"]["exclude"] == ["*/genindex*"]
    assert python["refresh_every"] == 86400
    assert shown("sqlite")["refresh_cron"] == "30 4 * * 1"

    again = forager("sources", "apply")
    assert (again.code, again.out.count("(keep)")) == (0, 2)
    assert shown("python@3.10") == python


def test_changes_are_shown_and_made(file: Path) -> None:
    forager("sources", "apply", "--yes")
    file.write_text(YAML.replace("schedule: 1d", "max_pages: 50").replace("*/genindex*", "*/x*"))
    plan = forager("sources", "apply", "--dry-run").out
    assert "~ python@3.10 (change)" in plan
    assert "max_pages: default -> 50" in plan
    assert "exclude: */genindex* -> */x*" in plan
    assert "schedule: every 86400 s -> off" in plan
    assert "= sqlite (keep)" in plan
    applied = forager("sources", "apply", "--yes").out
    assert "in progress with earlier options" in applied
    python = shown("python@3.10")
    assert (python["payload"]["max_pages"], python["refresh_every"]) == (50, None)
    assert python["next_refresh_at"] is None


def test_sources_can_stand_beside_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = 'log_level = "warning"\n[[sources]]\nname = "a"\nurl = "https://a.example/"\n'
    (tmp_path / "forager.toml").write_text(text)
    assert "+ a (create)" in forager("sources", "apply", "--dry-run").out


def test_the_files_of_the_how_to_are_valid(tmp_path: Path) -> None:
    for kind, number in (("yaml", 5), ("toml", 1)):
        [text] = re.findall(rf"^```{kind}\n(.*?)^```", HOW_TO.read_text(), re.M | re.S)
        (tmp_path / f"sources.{kind}").write_text(text)
        assert len(read_source_file(tmp_path / f"sources.{kind}")) == number


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources:\n- {name: a@b, url: https://a.example/}", "sources.0.name"),
        ("sources:\n- {name: a, url: 'mailto:x'}", "a: urls"),
        ("sources:\n- {name: a, url: https://a.example/, schedule: 5 5 5}", "cron"),
        (
            "sources:\n- {name: a, url: https://a.example/, schedual: 1d}",
            "sources.0.schedual: unknown; did you mean schedule?",
        ),
        ("sources:\n- &a {name: a, url: https://a.example/}\n- *a", "declared twice"),
        ("sources: !!python/object/apply:os.getcwd", "sources"),
        ("[" * 5000, "sources.yaml"),
        ("", "sources.yaml"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    ended: Finished = forager("sources", "apply", "--yes")
    assert ended.code == 2
    assert said in ended.err
