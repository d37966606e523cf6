"""Check Forager's URLs against the WHATWG cases: python benchmarks/conformance_urls.py CORPORA

CORPORA is a folder with `url-cases.json` (urltestdata.json of web-platform-tests).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from forager.extract.hosts import host_of
from forager.extract.urls import Refusal, join, normalize

Case = dict[str, Any]


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    cases = load_cases(Path(sys.argv[1]) / "url-cases.json")
    web = [case for case in cases if concerns_the_web(case)]
    misses = [(case, problem) for case in cases if (problem := miss(case))]
    for case, problem in misses:
        print(f"MISS {case['input']!a} on {case['base']!a}: {problem}")
    web_misses = sum(concerns_the_web(case) for case, _ in misses)
    print(f"http(s): {len(web) - web_misses} of {len(web)} right")
    print(f"all schemes: {len(cases) - len(misses)} of {len(cases)} right")
    return 1 if misses else 0


def load_cases(path: Path) -> list[Case]:
    """The cases; strings in the file are comments."""
    return [case for case in json.loads(path.read_bytes()) if isinstance(case, dict)]


def concerns_the_web(case: Case) -> bool:
    """Whether the result, or the expected result, is an http or https URL."""
    if not case.get("failure"):
        return case["protocol"] in ("http:", "https:")
    given = (case["input"].strip().lower(), (case["base"] or "").lower())
    return any(url.startswith(("http:", "https:")) for url in given)


def miss(case: Case) -> str | None:
    """The difference between result and expectation, or None."""
    expected = None if case.get("failure") else case["href"]
    joined = join(case["input"], case["base"])
    if joined != expected:
        return f"joined {joined!a}, expected {expected!a}"
    return _normalisation_miss(case)


def _normalisation_miss(case: Case) -> str | None:
    url = normalize(case["input"], case["base"])
    if case.get("failure"):
        return None if url is Refusal.INVALID else f"normalized {url!r}, expected a refusal"
    if case["protocol"] not in ("http:", "https:"):
        return None if url is Refusal.SCHEME else f"normalized {url!r}, expected another scheme"
    if isinstance(url, Refusal) or host_of(url) != case["host"]:
        return f"normalized {url!r}, expected the host {case['host']!r}"
    return None if normalize(url) == url else f"normalized {url!r} is not stable"


if __name__ == "__main__":
    sys.exit(main())
