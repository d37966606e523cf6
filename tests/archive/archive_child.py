"""A process that writes batches until it is killed, and prints each reference once it is durable.

usage: archive_child.py FOLDER OWNER LEASE BATCHES PAGE_BYTES
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import astuple
from itertools import count, islice
from pathlib import Path

from archive.archive_samples import no_register, packed
from forager.archive.storage import open_storage
from forager.archive.writer import ArchiveWriter
from forager.errors import ForagerError


async def main(folder: str, owner: str, lease: int, batches: int, size: int) -> None:
    writer = ArchiveWriter(open_storage(Path(folder)), owner, lease, no_register)
    numbers = count()
    for _ in range(batches):
        batch = list(islice(numbers, 5))
        refs = await writer.write([packed(number, size) for number in batch])
        for number, ref in zip(batch, refs, strict=True):
            print(json.dumps([number, *astuple(ref)]), flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])))
    except ForagerError as error:
        print(json.dumps({"error": type(error).__name__}), flush=True)
        raise SystemExit(error.exit_code) from None
