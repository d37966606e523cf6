"""Archives in small steps; waits after every file for a signal to continue, or is killed.

A file is complete then, and its products are still in the database.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic import SecretStr

from forager.db.database import Database
from forager.products import archiving
from forager.products.archiving import ProductArchiver
from forager.settings import Settings


async def main(url: str, home: str) -> None:
    settings = Settings(home=Path(home), database_url=SecretStr(url))
    archiving.sync_folder = wait  # type: ignore[attr-defined]
    async with Database(url, name="forager test") as database:
        await ProductArchiver(database, settings, ids=1).run_once()


def wait(folder: Path) -> None:
    print(folder, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
