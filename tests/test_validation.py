"""What is wrong with an input is said in sentences for people, on every way in."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, ValidationError

from forager.api.problems import InvalidFields, field_problems
from forager.crawl.declared import read_source_file
from forager.errors import InvalidInput
from forager.registry import find_operation
from forager.settings.loading import load_settings
from forager.validation import matches, sentences

SOURCE = Path(__file__).parents[1] / "src"


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


def _fits(text: str) -> str:
    raise ValueError(f"{text!r} does not fit")


class Inputs(BaseModel):
    number: Annotated[int, Field(ge=1, le=9)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    name: Annotated[str, Field(min_length=1, max_length=3)] = "a"
    code: Annotated[str, Field(pattern=matches("^[a-z]+$", "lower-case letters"))] = "a"
    names: Annotated[tuple[str, ...], Field(max_length=2)] = ()
    either: str | list[str] = "a"
    table: dict[str, int] = Field(default_factory=dict)
    on: bool = True
    at: AwareDatetime | None = None
    day: datetime | None = None
    job: UUID | None = None
    color: Color = Color.RED
    unit: Literal["GB", "request"] = "GB"
    own: Annotated[str, AfterValidator(_fits)] = ""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"number": "many"}, "number must be a whole number"),
        ({"number": 0}, "number must be at least 1"),
        ({"number": 10}, "number must be at most 9"),
        ({"share": 0}, "share must be more than 0"),
        ({"share": 1}, "share must be less than 1"),
        ({"name": ""}, "name must not be empty"),
        ({"name": "long"}, "name must have at most 3 characters"),
        ({"code": "A"}, "code must be lower-case letters"),
        ({"names": "a"}, "names must be a list"),
        ({"names": ["a"] * 3}, "names must have at most 2 items"),
        ({"names": ["a", 1]}, "names.1 must be text"),
        ({"table": 1}, "table must be a table of names and values"),
        ({"on": "perhaps"}, "on must be true or false"),
        ({"at": "2026-01-31T12:00"}, "at must be a time with its zone"),
        ({"day": "soon"}, "day must be a time such as"),
        ({"job": "x"}, "job must be an ID"),
        ({"color": "green"}, "color must be red or blue"),
        ({"unit": "MB"}, "unit must be GB or request"),
        ({"own": "this"}, "own: 'this' does not fit"),
    ],
)
def test_a_sentence_names_the_field_and_what_is_accepted(
    given: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        Inputs(**given)
    [said] = sentences(refused.value.errors())
    assert said.startswith(expected)


def test_all_types_of_a_union_are_named() -> None:
    with pytest.raises(ValidationError) as refused:
        Inputs.model_validate({"either": 1})
    assert " ".join(sentences(refused.value.errors())).count("must be") == 2


def test_every_pattern_is_described() -> None:
    undescribed = [
        path
        for path in SOURCE.rglob("*.py")
        if 'pattern="' in (text := path.read_text()) or 'pattern=r"' in text
    ]
    assert undescribed == []


def test_an_operation_names_its_option() -> None:
    operation = find_operation("domains set")
    with pytest.raises(InvalidInput) as refused:
        operation.bind({"hosts": ["a.example"], "region": "Eu West"})
    wanted = "region must be up to 32 lower-case letters, digits and dashes"
    assert refused.value.message == wanted


def test_a_declared_source_is_named(tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text("sources:\n- name: flask\n  url: https://a.example\n  include: docs\n")
    with pytest.raises(InvalidInput) as refused:
        read_source_file(file)
    assert refused.value.message == f"{file}:\nflask: include must be a list"


def test_an_invalid_request_is_explained() -> None:
    with pytest.raises(ValidationError) as refused:
        Inputs.model_validate({"number": "many"})
    problem = InvalidFields(field_problems(refused.value.errors(), "body"))
    assert problem.message == "body.number must be a whole number"
    assert problem.fields[0].message == "must be a whole number"


def test_a_wrong_setting_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_REGION", "Eu West")
    with pytest.raises(InvalidInput, match="FORAGER_REGION must be up to 32 lower-case letters"):
        load_settings()
