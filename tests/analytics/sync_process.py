"""A sync that waits after each dataset for a signal to continue, or is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic import SecretStr

from forager.analytics.sync import sync
from forager.db.database import Database
from forager.settings import Settings


async def main(url: str, home: str, clickhouse: str | None = None) -> None:
    server = SecretStr(clickhouse) if clickhouse else None
    settings = Settings(home=Path(home), database_url=SecretStr(url), clickhouse_url=server)
    async with Database(url, name="forager test") as database:
        await sync(database, settings, wait)


def wait(rows: int) -> None:
    print(rows, flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
