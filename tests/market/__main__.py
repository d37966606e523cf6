"""`python -m market`: the simulated market for longer, with a report in markdown.

Run it with `PYTHONPATH=tests`; `make chaos` does.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from pathlib import Path

from forager.db import schema
from forager.db.database import Database
from forager.db.embedded import join_server
from forager.logs import configure_logs
from forager.settings import Settings
from market.judging import check_market
from market.simulation import DAY, QUIET_HOURS, Market, open_market
from tasks.working import Tasks


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--shops", type=int, default=20)
    options.add_argument("--products", type=int, default=20)
    options.add_argument("--kills", type=int, default=3, help="hours between two kills; 0: none")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    configure_logs("critical")
    with tempfile.TemporaryDirectory(prefix="forager-market-") as folder:
        asyncio.run(_run(Path(folder), given))


async def _run(folder: Path, given: argparse.Namespace) -> None:
    with join_server(folder / "server") as use:
        schema.ensure_current(use.url)
        settings = Settings(home=folder / "home", database_url=use.url)
        async with Database(use.url, max_size=8) as database:
            tasks = Tasks(database, settings)
            terms = {"shops": given.shops, "products": given.products, "seed": given.seed}
            async with open_market(tasks, **terms) as market:
                started = time.monotonic()
                while time.monotonic() - started < given.seconds or market.hours % DAY:
                    if given.kills and market.hours % given.kills == given.kills - 1:
                        await market.kill_worker()
                    await market.pass_an_hour()
                lasted = time.monotonic() - started
                await market.settle()
                events = await check_market(market)
                print(await _report(market, events, lasted))


async def _report(market: Market, events: Counter[str], seconds: float) -> str:
    requests = sum((shop.requests for shop in market.all), Counter[str]())
    [(history,)] = await market.tasks.sql("SELECT count(*) FROM price_history")
    products = sum(len(shop.products) for shop in market.all)
    rows = {
        "shops x products": f"{len(market.all)} x {products // len(market.all)}",
        "simulated hours with faults, in real seconds": (
            f"{market.hours - QUIET_HOURS} in {seconds:.0f} s, and {QUIET_HOURS} quiet ones"
        ),
        "seconds for all healthy shops, per hour (median, longest)": (
            f"{sorted(market.rounds)[len(market.rounds) // 2]:.1f}, {max(market.rounds):.1f}"
        ),
        "workers killed": market.kills,
        "requests, of which to faulty shops": (
            f"{requests.total():,}, {requests.total() - requests['None']:,}"
        ),
        "rows of price history, of which phantom": f"{history:,}, 0",
        "events, delivered exactly once": f"{events.total():,}, {events.total():,}",
        "deliveries rejected by the receiver": f"{len(market.receiver.got) - events.total():,}",
        **{f"`{kind}`": f"{count:,}" for kind, count in sorted(events.items())},
    }
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| | |", "|---|---|", *lines])


if __name__ == "__main__":
    main()
