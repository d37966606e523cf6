"""A sync in small steps that says after each one that it was made. Killed by the tests."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic import SecretStr

from forager.analytics.sync import sync
from forager.db.database import Database
from forager.settings import Settings


async def main(url: str, home: str, chunk: int) -> None:
    settings = Settings(home=Path(home), database_url=SecretStr(url))
    async with Database(url, name="forager test") as database:
        await sync(database, settings, lambda rows: print(rows, flush=True), chunk=chunk)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
