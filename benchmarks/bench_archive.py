"""Speed of writing pages to the archive and reading them.

    python benchmarks/bench_archive.py FOLDER [--pages 5000] [--batch 50] [--max-bytes N]

FOLDER contains pages as files, which may be compressed (.gz). They are written repeatedly to an
archive in a temporary folder below the current one, which should be on a real disk.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from forager.archive.reader import SegmentScan, read_response
from forager.archive.segment import ArchiveRef
from forager.archive.storage import open_storage
from forager.archive.warc_record import Codec, ResponseRecord, compress, pack
from forager.archive.writer import ArchiveWriter

Packing = Callable[[list[ResponseRecord]], Awaitable[list[bytes]]]

HEADERS = [
    ("Server", "nginx"),
    ("Date", "Sun, 01 Mar 2026 12:00:00 GMT"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Encoding", "gzip"),
    ("Last-Modified", "Sat, 28 Feb 2026 08:00:00 GMT"),
    ("ETag", '"65f1c2-3a98"'),
    ("Vary", "Accept-Encoding"),
    ("Cache-Control", "max-age=600"),
]


def page_of(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def response(number: int, body: bytes) -> ResponseRecord:
    url = f"https://docs.example.org/guide/page-{number}.html"
    return ResponseRecord(url, datetime.now(UTC), 200, HEADERS, body, "OK", "192.0.2.1")


async def no_register(segment: str) -> None:
    """Do nothing: the row of a segment is not part of the measurement."""


async def write(folder: Path, bodies: list[bytes], pages: int, batch: int) -> list[ArchiveRef]:
    writer = ArchiveWriter(open_storage(folder), "bench", 1, no_register)
    refs: list[ArchiveRef] = []
    for start in range(0, pages, batch):
        numbers = range(start, min(start + batch, pages))
        refs += await writer.write([pack(response(n, bodies[n % len(bodies)])) for n in numbers])
    await writer.close()
    return refs


async def read(folder: Path, refs: list[ArchiveRef]) -> None:
    storage = open_storage(folder)
    for ref in refs:
        await read_response(storage, ref)


async def scan(folder: Path, segment: str) -> None:
    async for _ in SegmentScan(open_storage(folder), segment):
        pass


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best(work: Callable[[], object], rounds: int = 5) -> float:
    return min(timed(work) for _ in range(rounds))


def build_cost(body: bytes) -> None:
    record = response(1, body)
    raw = record.encode()
    encode = best(lambda: [record.encode() for _ in range(200)]) / 200
    print(f"one page of {len(body)} bytes: encode {encode * 1e6:.0f} us", end="")
    for codec in Codec:
        seconds = best(lambda c=codec: [compress(c, raw) for _ in range(200)]) / 200  # type: ignore[misc]
        print(
            f", {codec.value} {seconds * 1e6:.0f} us ({len(raw) / len(compress(codec, raw)):.2f}x)",
            end="",
        )
    print()


def run(bodies: list[bytes], pages: int, batch: int) -> None:
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        refs: list[ArchiveRef] = []
        wall, cpu = time.perf_counter(), time.process_time()
        refs = asyncio.run(write(folder, bodies, pages, batch))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        raw = sum(len(bodies[n % len(bodies)]) for n in range(pages))
        stored = sum(ref.length for ref in refs)
        picked = random.Random(1).choices(refs, k=min(2000, pages))
        reading = timed(lambda: asyncio.run(read(folder, picked))) / len(picked)
        scanning = timed(lambda: asyncio.run(scan(folder, refs[0].segment)))
        in_first = sum(ref.segment == refs[0].segment for ref in refs)
        print(
            f"sync every {batch}: {pages / wall:,.0f} records/s written "
            f"({cpu / pages * 1e6:.0f} us CPU each), {raw / stored:.2f}x smaller, "
            f"{reading * 1e3:.3f} ms per random read, {in_first / scanning:,.0f} records/s scanned"
        )


async def pack_in_thread(records: list[ResponseRecord]) -> list[bytes]:
    return await asyncio.to_thread(lambda: [pack(record) for record in records])


async def pack_at_once(records: list[ResponseRecord]) -> list[bytes]:
    return [pack(record) for record in records]


async def pack_one_by_one(records: list[ResponseRecord]) -> list[bytes]:
    frames = []
    for record in records:
        frames.append(pack(record))
        await asyncio.sleep(0)
    return frames


async def stalls(bodies: list[bytes], batch: int, packing: Packing) -> None:
    """Measure how long the event loop is blocked, with a task that always wants to run."""
    turns: list[float] = []

    async def spin() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0)
            turns.append(time.perf_counter() - start)

    with tempfile.TemporaryDirectory(dir=".") as name:
        writer = ArchiveWriter(open_storage(Path(name)), "bench", 1, no_register)
        spinning = asyncio.create_task(spin())
        start = time.perf_counter()
        for _ in range(60):
            records = [response(n, bodies[n % len(bodies)]) for n in range(batch)]
            await writer.write(await packing(records))
        each = (time.perf_counter() - start) / 60
        spinning.cancel()
        await writer.close()
    print(f"{packing.__name__}: {each * 1e3:.1f} ms a batch, stall {max(turns) * 1e3:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--max-bytes", type=int, default=1 << 30, help="skip larger pages")
    options = parser.parse_args()
    bodies = [page_of(path) for path in sorted(options.folder.iterdir()) if path.is_file()]
    bodies = [body for body in bodies if len(body) <= options.max_bytes]
    total = sum(map(len, bodies))
    print(f"{len(bodies)} pages, {total / len(bodies):,.0f} bytes on average")
    build_cost(min(bodies, key=lambda body: abs(len(body) - 15_000)))
    run(bodies, options.pages, options.batch)
    for packing in (pack_in_thread, pack_at_once, pack_one_by_one):
        asyncio.run(stalls(bodies, options.batch, packing))


if __name__ == "__main__":
    main()
