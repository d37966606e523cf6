"""Confidences as probabilities: what the readers' scores are worth on real shops.

`confidence.json` is written by `benchmarks/calibrate_products.py`.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.resources import files
from typing import Any

# no reading of a page is certain
_LEAST, _MOST = 0.02, 0.99


@cache
def _model() -> dict[str, Any]:
    model: dict[str, Any] = json.loads(files(__package__).joinpath("confidence.json").read_bytes())
    return model


def calibrated(field: str, score: float) -> float:
    """How often a value of such a score is right; fields without enough pages keep the score."""
    model = _model()
    if field not in model["offsets"]:
        return score
    logit = model["slope"] * log_odds(score) + model["offsets"][field]
    return min(_MOST, 1 / (1 + math.exp(-logit)))


def log_odds(score: float) -> float:
    bounded = min(max(score, _LEAST), _MOST)
    return math.log(bounded / (1 - bounded))
