"""Measure whether a learned block classifier is better than the rules on documentation pages.

    python -m benchmarks.learn_blocks CORPORA/docs

A block is the smallest element with a run of text. Logistic regression over its features (including
the decision of the rules) predicts whether its text is annotated as main content. It is
compared with the rules by cross-validation over the hosts of every second page, the pages that
rules were tuned on; `--held-out` also reads the others, with all of the first to learn from.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from selectolax.lexbor import LexborHTMLParser, LexborNode

from benchmarks.markdown_facts import plain_text
from benchmarks.quality_docs import Page, load_pages, word_scores
from forager.extract.document import extract_reading

BLOCKS = (
    "p", "li", "pre", "td", "th", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote",
    "figcaption", "summary", "label", "button", "div", "section", "span", "a", "code",
)  # fmt: skip
AROUND = ("nav", "footer", "aside", "header", "main", "article", "table", "form", "ul", "pre")
_BOILERPLATE = re.compile(
    r"nav|menu|side|foot|breadcrumb|cookie|banner|toc|share|social|feedback|related|search|version"
)
_INLINE = frozenset(
    ["a", "abbr", "b", "bdi", "br", "cite", "code", "em", "i", "kbd", "mark", "q", "s", "samp",
     "small", "span", "strong", "sub", "sup", "u", "var", "wbr"]
)  # fmt: skip
_SILENT = frozenset(["script", "style", "noscript", "template", "svg", "head"])
_PULL, _ROUNDS, _FOLDS, _SAME = 1.0, 40, 5, 0.5


@dataclass(frozen=True, slots=True)
class Block:
    text: str
    features: tuple[float, ...]
    kept: bool
    wanted: bool


@dataclass(frozen=True, slots=True)
class Sample:
    page: Page
    by_rules: str
    blocks: tuple[Block, ...]


def sample_of(page: Page) -> Sample:
    document = extract_reading(page.html, page.url, "text/html").document
    by_rules = plain_text(document.markdown) if document else ""
    kept, wanted = _shingles(by_rules), _shingles(page.content)
    found = list(_runs(LexborHTMLParser(page.html)))
    flags = [_share(text, kept) for _, text in found]
    blocks = tuple(
        Block(text, _features(node, text, at, flags), flags[at] >= _SAME,
              _share(text, wanted) >= _SAME)
        for at, (node, text) in enumerate(found)
    )  # fmt: skip
    return Sample(page, by_rules, blocks)


def _runs(tree: LexborHTMLParser) -> Iterator[tuple[LexborNode, str]]:
    """The texts of the page, each with the nearest element around it that is not inline."""
    owner: LexborNode | None = None
    parts: list[str] = []
    body = tree.body
    for node in body.traverse(include_text=True) if body is not None else ():
        if node.tag != "-text":
            continue
        around = node.parent
        while around is not None and around.tag in _INLINE:
            around = around.parent
        if around is None or around.tag in _SILENT:
            continue
        if owner is not None and owner.mem_id != around.mem_id:
            if words := " ".join("".join(parts).split()):
                yield owner, words
            parts = []
        owner = around
        parts.append(node.text_content or "")
    if owner is not None and (words := " ".join("".join(parts).split())):
        yield owner, words


def _features(node: LexborNode, text: str, at: int, kept: Sequence[float]) -> tuple[float, ...]:
    names, tags, depth = [], set(), 0
    above: LexborNode | None = node
    while above is not None and above.tag != "html":
        tags.add(above.tag)
        if depth < 6:
            names += [above.attributes.get("class") or "", above.attributes.get("id") or ""]
        depth, above = depth + 1, above.parent
    words = text.split()
    linked = sum(len(a.text()) for a in node.css("a"))
    near = [kept[i] for i in (at - 2, at - 1, at + 1, at + 2) if 0 <= i < len(kept)]
    rules = float(kept[at] >= _SAME)
    around = sum(near) / max(1, len(near))
    plain = [
        1.0, rules, around, rules * around, kept[at],
        math.log1p(len(words)), sum(map(len, words)) / len(words) / 10,
        min(1.0, linked / max(1, len(text))), depth / 20, at / len(kept),
        float(text[-1] in ".:!?"), sum(c.isdigit() for c in text) / len(text),
        float(bool(_BOILERPLATE.search(" ".join(names).lower()))),
    ]  # fmt: skip
    own = [float(node.tag == tag) for tag in BLOCKS]
    outer = [float(tag in tags) for tag in AROUND]
    crossed = [rules * value for value in (*plain[5:], *own, *outer)]
    return (*plain, *own, *outer, *crossed)


_CROSSED = 13 + len(BLOCKS) + len(AROUND)


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + n]) for n in (1, 2, 3) for at in range(len(words) - n + 1)}


def _share(text: str, known: set[tuple[str, ...]]) -> float:
    """The share of a text that is in another one, by groups of three words or all of its words."""
    words = re.findall(r"\w+", text.lower())
    n = min(3, len(words))
    if not n:
        return 0.0
    runs = [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]
    return sum(run in known for run in runs) / len(runs)


# the features with the decisions of the rules
_OF_RULES = (1, 2, 3, 4)


def fit(samples: Sequence[Sample], *, with_rules: bool = True) -> Any:
    """Weights of a logistic regression; a block counts by the logarithm of its words."""
    rows = np.array([b.features for s in samples for b in s.blocks])
    if not with_rules:
        rows[:, _OF_RULES] = 0
        rows[:, _CROSSED:] = 0
    right = np.array([float(b.wanted) for s in samples for b in s.blocks])
    mass = np.array([math.log1p(len(b.text.split())) / len(s.blocks) ** 0.5
                     for s in samples for b in s.blocks])  # fmt: skip
    weights = np.zeros(rows.shape[1])
    for _ in range(_ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (mass * (p - right)) + _PULL * weights
        bend = (rows * (mass * (p * (1 - p) + 1e-6))[:, None]).T @ rows + _PULL * np.eye(
            len(weights)
        )
        weights = weights - np.linalg.solve(bend, slope)
    return weights


def read(sample: Sample, weights: Any, least: float) -> str:
    """The text of the rules, without rejected blocks and with added blocks."""
    text = Counter(re.findall(r"\w+", sample.by_rules.lower()))
    for block in sample.blocks:
        p = 1 / (1 + math.exp(-max(-30.0, min(30.0, float(np.dot(block.features, weights))))))
        words = Counter(re.findall(r"\w+", block.text.lower()))
        if block.kept and p < least:
            text -= words
        elif not block.kept and p > 1 - least:
            text += words
    return " ".join(text.elements())


def compare(samples: Sequence[Sample], models: Sequence[Any], least: float) -> str:
    rules = [word_scores(s.by_rules, s.page.content)[2] for s in samples]
    texts = [read(s, m, least) for s, m in zip(samples, models, strict=True)]
    learned = [word_scores(t, s.page.content)[2] for t, s in zip(texts, samples, strict=True)]
    better = sum(new > old + 0.001 for old, new in zip(rules, learned, strict=True))
    worse = sum(new < old - 0.001 for old, new in zip(rules, learned, strict=True))
    means = [sum(values) / len(values) for values in (rules, learned)]
    return f"rules {means[0]:.4f}, learned {means[1]:.4f}; better {better}, worse {worse}"


def best_possible(samples: Sequence[Sample]) -> float:
    """The F1 of a classifier that makes no errors."""
    chosen = [" ".join(b.text for b in s.blocks if b.wanted) for s in samples]
    scores = [word_scores(t, s.page.content)[2] for t, s in zip(chosen, samples, strict=True)]
    return sum(scores) / len(scores)


def alone(samples: Sequence[Sample], models: Sequence[Any]) -> float:
    """The F1 of a classifier without the decisions of the rules."""
    scores = [
        word_scores(
            " ".join(b.text for b in s.blocks if np.dot(b.features, weights) > 0), s.page.content
        )[2]
        for s, weights in zip(samples, models, strict=True)
    ]
    return sum(scores) / len(scores)


def main() -> int:
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    pages = load_pages(Path(sys.argv[1]))
    dev = [sample_of(page) for page in pages[::2]]
    hosts = sorted({urlsplit(s.page.url).hostname or "" for s in dev})
    fold = {host: at % _FOLDS for at, host in enumerate(hosts)}
    folds = [fold[urlsplit(s.page.url).hostname or ""] for s in dev]
    parts = [[s for s, f in zip(dev, folds, strict=True) if f != n] for n in range(_FOLDS)]
    models = [fit(part) for part in parts]
    for least in (0.5, 0.3, 0.1):
        print(f"under {least}:", compare(dev, [models[f] for f in folds], least))
    unaided = [fit(part, with_rules=False) for part in parts]
    print(f"without the rules: {alone(dev, [unaided[f] for f in folds]):.4f}")
    print(f"blocks without a fault: {best_possible(dev):.4f}")
    if "--held-out" in sys.argv:
        others = [sample_of(page) for page in pages[1::2]]
        print("held out:", compare(others, [fit(dev)] * len(others), 0.5))
        bare = fit(dev, with_rules=False)
        print(f"without the rules: {alone(others, [bare] * len(others)):.4f}")
        print(f"blocks without a fault: {best_possible(others):.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
