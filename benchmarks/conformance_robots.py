"""Check robots.txt decisions against google/robotstxt's cases: conformance_robots.py FOLDER."""

from __future__ import annotations

import functools
import json
import sys
import timeit
from pathlib import Path

from forager.fetch.robots.rules import parse_robots


def main(folder: Path) -> int:
    cases = json.loads((folder / "robots-cases.json").read_text(encoding="utf-8"))
    misses = [case for case in cases if not is_right(*case[1:])]
    for test, body, agent, url, allowed in misses:
        print(f"miss  {test}: {agent!r} {url!r} should be {allowed}\n{body}")
    print(f"robots.txt: {len(cases) - len(misses)} of {len(cases)} cases right")
    print_speed()
    return 1 if misses else 0


def is_right(body: str, agent: str, url: str, allowed: bool) -> bool:
    return parse_robots(body.encode()).verdict(url, agent).allowed is allowed


def print_speed() -> None:
    rules = "".join(
        f"Disallow: /private/{n}/\nAllow: /private/{n}/open*.html$\n" for n in range(50)
    )
    robots = parse_robots(f"User-agent: *\n{rules}".encode())
    for url in ("https://example.org/docs/page.html?x=1", "https://example.org/private/49/x.html"):
        loops = 20_000
        judge = functools.partial(robots.verdict, url, "Forager")
        seconds = timeit.timeit(judge, number=loops)
        print(f"verdict among 100 rules: {seconds / loops * 1e6:.1f} us  {url}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
