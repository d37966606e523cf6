"""Regular expressions work alike in all versions of Python that Forager runs on."""

from __future__ import annotations

import importlib
import pkgutil
import re
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import forager.extract

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    # the parser of the module re, which is public nowhere
    from re import _constants, _parser


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    for found in pkgutil.walk_packages(forager.extract.__path__, "forager.extract."):
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                yield f"{found.name}.{name}", value


def possessive_groups(parsed: Any) -> Iterator[Any]:
    """The bodies of possessive loops that have several parts."""
    if isinstance(parsed, tuple | list | _parser.SubPattern):
        for part in parsed:
            if isinstance(part, tuple) and part and part[0] is _constants.POSSESSIVE_REPEAT:
                body = part[1][2]
                if len(body) > 1:
                    yield body
            yield from possessive_groups(part)


def test_no_loop_over_a_group_is_possessive() -> None:
    """Before Python 3.11.5, it skips what its last round has read when that round fails."""
    checked = dict(patterns())
    assert len(checked) > 50
    wrong = [
        name
        for name, pattern in checked.items()
        if any(possessive_groups(_parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)))
    ]
    assert wrong == []


@pytest.mark.parametrize("pattern", [r"(?:-[a-z]++)*+", r"x(?:(?:ab)?+c)"])
def test_such_a_loop_is_found(pattern: str) -> None:
    assert list(possessive_groups(_parser.parse(pattern)))
