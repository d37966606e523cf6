"""Measure what machine learning would gain in product extraction.

    python -m benchmarks.ablate_products CORPORA/products

Two experiments, each on the shops tuned on and on those held out. A scorer chooses between the
claims of a field instead of the fixed rules; it is fitted without the shop that is read. A learned
place is the path at which the other pages of a shop show the value of their structured data; it is
tried on pages whose structured data is removed.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.marked_products import MarkedPage, is_right, load_pages, tuned_shops
from forager.extract.product.extract import find_facts
from forager.extract.product.merge import FieldClaim, claims_for, merge
from forager.extract.product.page import ProductPage, open_page
from forager.extract.product.places import (
    STATING,
    LearnedPlace,
    learned_facts,
    place_of,
    stated_price,
)
from forager.extract.product.product import Fact, FieldName, Product

FIELDS = (FieldName.PRICE, FieldName.AVAILABILITY, FieldName.BRAND, FieldName.SKU)
PLACES = (*sorted(STATING), "script", "dom", "label", "url", "text")
_PULL = 1.0


@dataclass(frozen=True)
class Sample:
    """An annotated page, with all candidate values of its fields."""

    marked: MarkedPage
    page: ProductPage
    facts: tuple[Fact, ...]

    def is_right(self, name: FieldName, value: Any) -> bool:
        return is_right(name, self.marked, replace(Product(), **{name.value: value}))


def _place(fact: Fact) -> str:
    return fact.origin.partition(":")[0]


# --- a scorer between claims ------------------------------------------------------------------


def _features(claim: FieldClaim) -> list[float]:
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


def learn_places(read: Sequence[Sample]) -> Iterator[str]:
    """Read each page without its structured data, with the path of the other pages of its shop."""
    shops: dict[str, list[Sample]] = defaultdict(list)
    for sample in read:
        shops[sample.marked.shop].append(sample)
    counts: Counter[str] = Counter()
    for samples in (each for each in shops.values() if len(each) > 1):
        for sample in (s for s in samples if s.marked.truth.get(FieldName.PRICE)):
            counts += _read_bare(sample, _voted(s for s in samples if s is not sample))
    yield f"price at a learned place: {dict(counts)}"


def _voted(samples: Iterable[Sample]) -> str | None:
    stated = ((s.page, stated_price(s.facts)) for s in samples)
    votes = Counter(place_of(price, page) for page, price in stated if price is not None)
    del votes[None]
    return votes.most_common(1)[0][0] if votes else None


def _read_bare(sample: Sample, path: str | None) -> Counter[str]:
    bare = [fact for fact in sample.facts if _place(fact) not in STATING]
    learned = list(learned_facts(sample.page, bare, LearnedPlace(path)))
    without = merge(bare, sample.page).price
    price = merge([*bare, *learned], sample.page).price
    wrong = [f for f in learned if f.field is FieldName.PRICE]
    return Counter(
        {
            "pages": 1,
            "without": sample.is_right(FieldName.PRICE, without),
            "with": sample.is_right(FieldName.PRICE, price),
            "place": bool(learned),
            "wrong place": any(not sample.is_right(f.field, f.value) for f in wrong),
        }
    )


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
