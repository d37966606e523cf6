"""A process that picks proxies and prints the id of each.

usage: proxy_picker.py DATABASE_URL HOME PICKS
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from forager.db.database import Database
from forager.fetch.guard import GuardPolicy
from forager.fetch.proxies.service import ProxyPool
from forager.secrets import Vault
from forager.settings import Settings


async def main(url: str, home: str, picks: int) -> None:
    async with Database(url, name="forager picker") as database:
        pool = ProxyPool(database, Vault(Settings(home=Path(home))), GuardPolicy())
        async with database.connection():
            print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for _ in range(picks):
            picked = await pool.pick("shop.example")
            print(picked.id if picked else "none", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
