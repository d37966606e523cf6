"""Calibrate the confidences of product fields.

    python -m benchmarks.calibrate_products CORPORA/products [--write]

One slope and an offset for each field turn scores into probabilities (Platt scaling, drawn towards
the scores themselves because there are few pages). They are fitted on the pages of every second
shop; the other shops only measure. `--write` stores them in the package.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import forager.extract.product
from benchmarks.marked_products import MarkedPage, is_right, load_pages, tuned_shops
from forager.extract.product.extract import find_facts
from forager.extract.product.merge import log_odds, merge
from forager.extract.product.page import open_page

# The brand and the GTIN of many pages are not annotated although the pages show them: there, a
# correct value counts as wrong.
CALIBRATED = ("price", "currency", "availability", "sku")
_PULL = 0.3
_SHIPPED = Path(forager.extract.product.__file__).with_name("confidence.json")
_STEPS, _RATE = 20_000, 0.02


@dataclass(frozen=True, slots=True)
class Judged:
    """An extracted value, its score, and whether it is correct."""

    shop: str
    field: str
    score: float
    right: bool


@dataclass(frozen=True, slots=True)
class Model:
    slope: float
    offsets: dict[str, float]

    def probability(self, each: Judged) -> float:
        logit = self.slope * log_odds(each.score) + self.offsets[each.field]
        return 1 / (1 + math.exp(-logit))


def shipped_model() -> Model:
    return Model(**json.loads(_SHIPPED.read_bytes()))


def judge_pages(pages: Sequence[MarkedPage]) -> list[Judged]:
    found: list[Judged] = []
    for marked in pages:
        page = open_page(marked.html, marked.url, "text/html")
        product = merge(find_facts(page), page, calibrate=False)
        for name in CALIBRATED:
            value = getattr(product, name)
            if value is not None and marked.truth.get(name):
                right = is_right(name, marked, product) or _is_thousandfold(name, marked, value)
                score = product.evidence[name].confidence
                found.append(Judged(marked.shop, name, score, right))
    return found


def _is_thousandfold(name: str, marked: MarkedPage, value: object) -> bool:
    """Whether a price was annotated with a decimal point that separates thousands."""
    return name == "price" and any(value == 1000 * Decimal(each) for each in marked.truth[name])


def fit(judged: Sequence[Judged]) -> Model:
    """Logistic regression by gradient descent."""
    slope, offsets = 1.0, dict.fromkeys(CALIBRATED, 0.0)
    for _ in range(_STEPS):
        model = Model(slope, offsets)
        errors = [(each, model.probability(each) - each.right) for each in judged]
        steep = sum(error * log_odds(each.score) for each, error in errors) + _PULL * (slope - 1)
        moves = {
            name: sum(error for each, error in errors if each.field == name) + _PULL * offset
            for name, offset in offsets.items()
        }
        slope -= _RATE * steep / 10
        offsets = {name: offset - _RATE * moves[name] for name, offset in offsets.items()}
        if abs(steep) + sum(map(abs, moves.values())) < 1e-4:
            break
    return Model(slope, offsets)


def losses(probabilities: Sequence[float], judged: Sequence[Judged]) -> tuple[float, float]:
    """Logarithmic loss and Brier score: both are smaller for better probabilities."""
    pairs = [
        (min(max(p, 0.001), 0.999), e.right) for p, e in zip(probabilities, judged, strict=True)
    ]
    logarithmic = -sum(math.log(p if right else 1 - p) for p, right in pairs) / len(pairs)
    return logarithmic, sum((p - right) ** 2 for p, right in pairs) / len(pairs)


def compare(name: str, judged: Sequence[Judged], model: Model) -> list[str]:
    """A row: how many values, how many right, and both kinds of confidence."""
    scores = [each.score for each in judged]
    calibrated = [model.probability(each) for each in judged]
    right = sum(each.right for each in judged) / len(judged)
    cells = [name, str(len(judged)), f"{right:.1%}"]
    for values in (scores, calibrated):
        logarithmic, brier = losses(values, judged)
        cells += [f"{sum(values) / len(values):.1%}", f"{logarithmic:.3f}", f"{brier:.3f}"]
    return cells


BINS = (0.98, 0.95, 0.9, 0.0)


def reliability(name: str, judged: Sequence[Judged], model: Model) -> list[list[str]]:
    """A row for each range of shown confidence: how many values, their mean, how many right."""
    rows, rest = [], [(model.probability(each), each.right) for each in judged]
    for above, least in zip((1.0, *BINS), BINS, strict=False):
        part = [(p, right) for p, right in rest if p >= least]
        rest = [(p, right) for p, right in rest if p < least]
        if part:
            mean = sum(p for p, _ in part) / len(part)
            right = sum(right for _, right in part)
            shown = f"{least:.0%} to {above:.0%}" if least else f"under {above:.0%}"
            rows.append([name, shown, str(len(part)), f"{mean:.1%}", f"{right / len(part):.1%}"])
    return rows


def cross_validated(judged: Sequence[Judged]) -> list[float]:
    """Each shop's probabilities by a model that was fitted without that shop."""
    models = {
        shop: fit([each for each in judged if each.shop != shop])
        for shop in {each.shop for each in judged}
    }
    return [models[each.shop].probability(each) for each in judged]


def main() -> int:
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    pages = load_pages(Path(sys.argv[1]))
    tuned = tuned_shops(pages)
    judged = judge_pages(pages)
    dev = [each for each in judged if each.shop in tuned]
    held_out = [each for each in judged if each.shop not in tuned]
    model = fit(dev)
    logarithmic, brier = losses(cross_validated(dev), dev)
    print(f"cross-validated by shop: loss {logarithmic:.3f}, Brier {brier:.3f}")
    for name, part in (("dev", dev), ("held out", held_out)):
        print(" ".join(compare(name, part, model)))
        for field in CALIBRATED:
            of_field = [each for each in part if each.field == field]
            print(" ".join(compare(f"  {field}", of_field, model)))
    if "--write" in sys.argv:
        offsets = {name: round(offset, 3) for name, offset in model.offsets.items()}
        written = {"slope": round(model.slope, 3), "offsets": offsets}
        _SHIPPED.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
