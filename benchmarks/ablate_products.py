"""What learning would gain in product extraction.

    python -m benchmarks.ablate_products CORPORA/products

Two experiments, each on the shops tuned on and on those held out. A scorer chooses between the
claims of a field instead of the fixed rules; it is fitted without the shop that is read. A learned
place is the path at which the other pages of a shop show the value of their structured data; it is
tried on pages whose structured data is removed.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from selectolax.lexbor import LexborNode

from benchmarks.quality_products import MarkedPage, is_right, load_pages, tuned_shops
from forager.extract.product.availability import words_of
from forager.extract.product.extract import find_facts
from forager.extract.product.merge import Claim, choose, claims_for, merge
from forager.extract.product.page import ProductPage, open_page
from forager.extract.product.price import money_in
from forager.extract.product.record import Fact, FieldName, Product
from forager.extract.product.wording import code_key

FIELDS = (FieldName.PRICE, FieldName.AVAILABILITY, FieldName.BRAND, FieldName.SKU)
STRUCTURED = frozenset(["json-ld", "microdata", "rdfa", "opengraph", "meta"])
PLACES = (*sorted(STRUCTURED), "script", "dom", "label", "url", "text")
_PULL = 1.0
_MAX_STEPS, _MAX_PATHS = 4, 400
_TESTS = ("itemprop", "data-testid", "data-test", "data-automation", "data-qa")
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_MADE_UP = re.compile(r"\d{3,}")
_SILENT = frozenset(["script", "style", "option", "noscript", "meta", "link", "title"])


@dataclass(frozen=True)
class Sample:
    """A marked page and everything that is claimed about it."""

    marked: MarkedPage
    page: ProductPage
    facts: tuple[Fact, ...]

    @cached_property
    def structured(self) -> dict[FieldName, Any]:
        facts = [fact for fact in self.facts if _place(fact) in STRUCTURED]
        best = {name: choose(name, facts) for name in FIELDS}
        return {name: c.value if c and c.confidence >= 0.7 else None for name, c in best.items()}

    def is_right(self, name: FieldName, value: Any) -> bool:
        return is_right(name, self.marked, replace(Product(), **{name.value: value}))


def _place(fact: Fact) -> str:
    return fact.origin.partition(":")[0]


# --- a scorer between claims ------------------------------------------------------------------


def _features(claim: Claim) -> list[float]:
    score = min(max(claim.confidence, 0.02), 0.99)
    places = [float(place in claim.places) for place in PLACES]
    return [1.0, math.log(score / (1 - score)), len(claim.places) - 1.0, *places]


def _fitted(samples: Sequence[Sample], name: FieldName) -> Any:
    claims = [(s, claim) for s in samples for claim in claims_for(name, list(s.facts))]
    rows = np.array([_features(claim) for _, claim in claims])
    right = np.array([float(s.is_right(name, claim.value)) for s, claim in claims])
    weights = np.zeros(rows.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (p - right) + _PULL * weights
        bend = (rows * (p * (1 - p) + 1e-9)[:, None]).T @ rows + _PULL * np.eye(len(weights))
        weights = weights - np.linalg.solve(bend, slope)
    return weights


def score_claims(dev: Sequence[Sample], read: Sequence[Sample]) -> Iterator[str]:
    for name in FIELDS:
        marked = [s for s in read if s.marked.truth.get(name) and claims_for(name, list(s.facts))]
        rules = scorer = possible = 0
        for sample in marked:
            weights = _fitted([s for s in dev if s.marked.shop != sample.marked.shop], name)
            claims = claims_for(name, list(sample.facts))
            best = max(claims, key=lambda claim: float(np.dot(_features(claim), weights)))
            product = merge(sample.facts, sample.page)
            rules += sample.is_right(name, getattr(product, name.value))
            scorer += sample.is_right(name, best.value)
            possible += any(sample.is_right(name, claim.value) for claim in claims)
        yield f"{name}: rules {rules}, scorer {scorer}, possible {possible} of {len(marked)}"


# --- places learned for a shop ----------------------------------------------------------------


def _step(node: LexborNode) -> str:
    attributes = node.attributes
    for name in _TESTS:
        value = attributes.get(name) or ""
        if _NAME.fullmatch(value) and not _MADE_UP.search(value):
            return f'{node.tag}[{name}="{value}"]'
    names = [(attributes.get("id") or "", "#")] + [
        (each, ".") for each in (attributes.get("class") or "").split()
    ]
    usable = [f"{mark}{n}" for n, mark in names if _NAME.fullmatch(n) and not _MADE_UP.search(n)]
    return f"{node.tag}{usable[0] if usable and usable[0][0] == '#' else ''.join(usable[:3])}"


def _paths(node: LexborNode) -> Iterator[str]:
    steps: list[str] = []
    above: LexborNode | None = node
    while above is not None and above.tag not in ("body", "html") and len(steps) < _MAX_STEPS:
        steps.insert(0, _step(above))
        if any(mark in steps[0] for mark in "#.[") or len(steps) > 1:
            yield " > ".join(steps)
        above = above.parent


def _value(name: FieldName, node: LexborNode, page: ProductPage) -> Any:
    text = " ".join(node.text(separator=" ")[:300].split())
    if not 0 < len(text) <= 120:
        return None
    if name is FieldName.PRICE:
        amounts = {money.amount for money in money_in(text, page.currency_hints) if money.amount}
        return amounts.pop() if len(amounts) == 1 else None
    if name is FieldName.AVAILABILITY:
        return words_of(text)
    if name is FieldName.SKU:
        code = (text.rpartition(":")[2].split() or [""])[-1]
        return code if re.search(r"\d", code) and len(code) < 40 else None
    return text if len(text) < 60 else None


def _agree(name: FieldName, one: Any, other: Any) -> bool:
    if one is None or other is None or name not in (FieldName.SKU, FieldName.BRAND):
        return one is not None and one == other
    return code_key(str(one)) == code_key(str(other))


def _read_at(path: str, name: FieldName, sample: Sample) -> Any:
    node = sample.page.tree.css_first(path)
    return None if node is None else _value(name, node, sample.page)


def _learned(samples: Sequence[Sample], name: FieldName) -> str | None:
    """The path that agrees with the structured data of most pages, and contradicts none."""
    known = [s for s in samples if s.structured[name] is not None]
    votes: Counter[str] = Counter()
    for sample in known:
        body = sample.page.tree.body
        for node in body.traverse() if body is not None else ():
            if node.tag not in _SILENT:
                value = _value(name, node, sample.page)
                if _agree(name, value, sample.structured[name]):
                    votes.update(set(_paths(node)))
    best: tuple[int, int, str] | None = None
    for path, _ in votes.most_common(_MAX_PATHS):
        met = [s for s in known if s.page.tree.css_first(path) is not None]
        right = sum(_agree(name, _read_at(path, name, s), s.structured[name]) for s in met)
        if right and right == len(met):
            best = max(best or (0, 0, ""), (right, len(path), path))
    return best[2] if best else None


def learn_places(read: Sequence[Sample]) -> Iterator[str]:
    shops: dict[str, list[Sample]] = defaultdict(list)
    for sample in read:
        shops[sample.marked.shop].append(sample)
    for name in FIELDS:
        counts: Counter[str] = Counter()
        for samples in (each for each in shops.values() if len(each) > 1):
            for sample in (s for s in samples if s.marked.truth.get(name)):
                path = _learned([s for s in samples if s is not sample], name)
                value = _read_at(path, name, sample) if path else None
                bare = [fact for fact in sample.facts if _place(fact) not in STRUCTURED]
                without = getattr(merge(bare, sample.page), name.value)
                counts["pages"] += 1
                counts["without"] += sample.is_right(name, without)
                counts["with"] += sample.is_right(name, without if value is None else value)
                counts["place"] += value is not None
                counts["wrong place"] += value is not None and not sample.is_right(name, value)
        yield f"{name}: {dict(counts)}"


def main() -> int:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    samples = []
    for marked in load_pages(Path(sys.argv[1])):
        page = open_page(marked.html, marked.url, "text/html")
        samples.append(Sample(marked, page, find_facts(page)))
    tuned = tuned_shops(s.marked for s in samples)
    dev = [s for s in samples if s.marked.shop in tuned]
    held_out = [s for s in samples if s.marked.shop not in tuned]
    for title, part in (("shops tuned on", dev), ("shops held out", held_out)):
        print(title)
        for line in (*score_claims(dev, part), *learn_places(part)):
            print(f"  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
