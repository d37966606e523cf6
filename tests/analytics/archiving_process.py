"""Archives products in small batches; after each it waits for a signal, or is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic import SecretStr

from forager.db.database import Database
from forager.products.archiving import archive_products
from forager.settings import Settings


async def main(url: str, home: str, batch: int) -> None:
    settings = Settings(home=Path(home), database_url=SecretStr(url))
    async with Database(url, name="forager test") as database:
        await archive_products(database, settings, batch=batch, progress=wait)


def wait(count: int) -> None:
    print(count, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
