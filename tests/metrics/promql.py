"""As much of PromQL as is needed to find a mistake in an expression without Prometheus at hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<duration>\[\$?\w+\])
  | (?P<number>\d+(?:\.\d+)?)
  | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
  | (?P<operator>=~|!~|!=|==|>=|<=|[-+*/%^<>=(),{}])
    """,
    re.VERBOSE,
)
FUNCTIONS = {
    "absent",
    "histogram_quantile",
    "increase",
    "max",
    "min",
    "rate",
    "sum",
    "topk",
    "vector",
}
WORDS = {"and", "by", "or", "unless", "without"}
OWN_LABELS = {"job", "instance", "le"}
CLOSES = {")": "(", "}": "{"}


@dataclass(slots=True)
class Used:
    """What an expression speaks of."""

    metrics: set[str] = field(default_factory=set)
    # of each metric, what it is chosen by
    matchers: list[tuple[str, str, str, str]] = field(default_factory=list)
    grouped_by: set[str] = field(default_factory=set)


def read(expression: str) -> Used:
    """What an expression uses; AssertionError if it cannot be one."""
    used, open_brackets = Used(), []
    tokens = [*_tokens(expression), ("end", "")]
    metric, grouping = "", False
    for (kind, text), (_, after) in pairwise(tokens):
        if text in CLOSES.values():
            open_brackets.append(text)
        elif text in CLOSES:
            assert open_brackets, f"{text} closes nothing"
            assert open_brackets.pop() == CLOSES[text], f"{text} closes something else"
            grouping = grouping and text != ")"
        elif text in ("by", "without"):
            grouping = True
            assert after == "(", f"nothing after {text}"
        elif kind == "name" and open_brackets[-1:] == ["{"]:
            label = text
            assert after in ("=", "!=", "=~", "!~"), f"{label} is compared with nothing"
            operator = after
        elif kind == "string" and open_brackets[-1:] == ["{"]:
            used.matchers.append((metric, label, operator, text[1:-1]))
        elif kind == "name" and grouping:
            used.grouped_by.add(text)
        elif (kind == "name" and after in ("(", "by", "without")) or text in WORDS:
            assert text in FUNCTIONS | WORDS, f"{text} is no function"
        elif kind == "name":
            metric = text
            used.metrics.add(text)
    assert not open_brackets, "something is not closed"
    return used


def check(expression: str, labels: Mapping[str, set[str]]) -> Used:
    """Every metric is known, and has the labels that it is chosen and grouped by."""
    used = read(expression)
    for metric in used.metrics:
        assert metric in labels, f"no metric {metric} in {expression}"
    for metric, label, _, _ in used.matchers:
        assert label in labels[metric] | OWN_LABELS, f"{metric} has no label {label}"
    known = {label for metric in used.metrics for label in labels[metric]} | OWN_LABELS
    assert used.grouped_by <= known, f"{used.grouped_by - known} in {expression}"
    return used


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(expression):
        match = TOKEN.match(expression, position)
        assert match is not None, f"cannot be read from here: {expression[position:]}"
        position = match.end()
        if match.lastgroup != "space":
            yield str(match.lastgroup), match.group()
