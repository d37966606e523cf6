"""Time and memory of the set of known URLs: bench_seen.py [COUNT], ten million by default."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from random import Random

from forager.crawl.frontier.seen import SeenSet

LINKS_PER_PAGE = 100


def main(count: int) -> None:
    seconds, seen = measure_refill(SeenSet(count), count)
    print(f"refill, size known    {seconds:6.1f} s for {count:,}  ({seen.nbytes / 1e6:.0f} MB)")
    for name, seed in (("known", 1), ("unknown", 2)):
        print(f"lookup, {name:8}      {measure_lookup(seen, seed):6.2f} us")
        print(
            f"add_many of {LINKS_PER_PAGE}, {name:8} {measure_pages(seen, seed):5.2f} us per link"
        )
    del seen
    seconds, seen = measure_refill(SeenSet(), count)
    print(f"refill, growing       {seconds:6.1f} s for {count:,}  ({seen.nbytes / 1e6:.0f} MB)")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak of the process   {peak / 1024:6.0f} MiB")


def fingerprints(count: int, seed: int) -> Iterator[int]:
    source = Random(seed)
    return (source.getrandbits(64) for _ in range(count))


def measure_refill(seen: SeenSet, count: int) -> tuple[float, SeenSet]:
    """Seconds to fill the set, without generating the numbers."""
    began = time.perf_counter()
    for _ in fingerprints(count, 1):
        pass
    between = time.perf_counter()
    seen.add_many(fingerprints(count, 1))
    return time.perf_counter() - between - (between - began), seen


def measure_lookup(seen: SeenSet, seed: int) -> float:
    wanted = list(fingerprints(100_000, seed))
    began = time.perf_counter()
    for fingerprint in wanted:
        _ = fingerprint in seen
    return (time.perf_counter() - began) / len(wanted) * 1e6


def measure_pages(seen: SeenSet, seed: int) -> float:
    wanted = list(fingerprints(100_000, seed))
    began = time.perf_counter()
    for start in range(0, len(wanted), LINKS_PER_PAGE):
        seen.add_many(wanted[start : start + LINKS_PER_PAGE])
    return (time.perf_counter() - began) / len(wanted) * 1e6


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
