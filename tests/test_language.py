"""Texts that people see are plain English: phrases that readers found odd do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "forager"
BANNED = (
    "anew|anybody|everybody|somebody|whoever|in earnest|comes along|gives way|(?:is|are) away",
    "hears? of|told of|no such thing|mend(?:s|ed)?|of its own|for good|what became of|one a line",
    "goes? on (?:with|after|where|meanwhile)|thrown away|taken back|no more fit|tracked no more",
    "colours?|behaviour|catalogue|dearest|cut: showing|done a minute|keep it as it is",
)
ODD = re.compile(rf"\b(?:{'|'.join(BANNED)})\b", re.IGNORECASE)
# their docstrings are help texts and API descriptions
SHOWN_DOCSTRINGS = ("cli", "api/routes")
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE)\b")


def _docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module that can reach a person; helpers' docstrings cannot."""
    tree = ast.parse(path.read_text())
    shown = path.relative_to(SOURCE).as_posix().startswith(SHOWN_DOCSTRINGS)
    hidden = set() if shown else set(_docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in hidden:
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, _joined(node)


def _joined(text: ast.JoinedStr) -> str:
    """An f-string with a blank for each value: its fragments alone may be single words."""
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "{}" for part in text.values
    )


def _exceptions_as_text(path: Path) -> Iterator[int]:
    """Lines that write a caught exception as Python does, rather than with `error_text`."""
    for handler in ast.walk(ast.parse(path.read_text())):
        if isinstance(handler, ast.ExceptHandler) and handler.name:
            # a text that is only compared is not shown
            compared = {
                part
                for node in ast.walk(handler)
                if isinstance(node, ast.Compare)
                for part in ast.walk(node)
            }
            for node in set(ast.walk(handler)) - compared:
                match node:
                    case ast.FormattedValue(value=ast.Name(id=name)) if name == handler.name:
                        yield node.lineno
                    case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]) if (
                        name == handler.name
                    ):
                        yield node.lineno


def test_messages_have_no_exceptions_in_the_notation_of_python() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in _exceptions_as_text(path)
    ]
    assert found == []


def test_messages_and_help_texts_have_no_odd_phrases() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {odd[0]!r} in {text.strip()[:80]!r}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in _texts(path)
        if " " in text.strip() and not SQL.search(text) and (odd := ODD.search(text))
    ]
    assert found == []


def test_words_between_the_values_of_an_f_string_are_checked() -> None:
    [node] = [
        each for each in ast.walk(ast.parse('f"Mend {x}?"')) if isinstance(each, ast.JoinedStr)
    ]
    assert ODD.search(_joined(node))


@pytest.mark.parametrize(
    "pattern",
    [
        "src/forager/web/templates/*.html",
        "*.md",
        "docs/**/*.md",
        "benchmarks/results/*.md",
        "deploy/**/*.yml",
        "compose.yaml",
        "Makefile",
    ],
)
def test_pages_have_no_odd_phrases(pattern: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {odd[0]!r}"
        for path in sorted(ROOT.glob(pattern))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (odd := ODD.search(line))
    ]
    assert found == []


ARCHAIC = re.compile(
    r"(?:#|\"\"\").*\b(anew|somebody|anybody|everybody|whoever|for good|mend(?:s|ed)?)\b"
)


@pytest.mark.parametrize("folder", ["src", "benchmarks", "chaos", "scripts", "tests"])
def test_comments_and_docstrings_have_no_archaic_words(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {odd[1]!r}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (odd := ARCHAIC.search(line))
    ]
    assert found == []


RIDDLES = re.compile(
    r"(?:^|_)(?:rests|resting|rested|nap|trouble|patience|lessons?|guardian|perhaps|door|adopt|meet"
    r"|judged?|keeper|wish|adopted)(?:_|$)|normalis|unauthoris|recognis|colour|behaviour|catalogue"
)
WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _identifiers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The names that a module gives: classes, functions, arguments, variables, attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield node.lineno, name
            case ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def _is_riddle(name: str) -> bool:
    return bool(RIDDLES.search(WORD_START.sub("_", name).lower()))


def test_identifiers_use_terms_of_the_field() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, name in _identifiers(ast.parse(path.read_text()))
        if _is_riddle(name)
    ]
    assert found == []


@pytest.mark.parametrize("name", ["HostResting", "_nap", "PATIENCE_LIMIT", "NormalisedUrl"])
def test_riddles_are_found_inside_identifiers(name: str) -> None:
    assert _is_riddle(name)


@pytest.mark.parametrize("name", ["restart", "snapshot", "indoor", "normalize", "arrested"])
def test_parts_of_other_words_are_no_riddles(name: str) -> None:
    assert not _is_riddle(name)
