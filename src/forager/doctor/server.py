"""The database's server: connections, dead rows, and transactions that never end."""

from __future__ import annotations

from forager.db.database import Database
from forager.doctor import store
from forager.doctor.check import Check, ok, warn

FEW_LEFT = 0.8
# of a table, before autovacuum must be said to fall behind: its own default is a fifth
MUCH_DEAD = 50_000
DEAD_SHARE = 1.0
LONG_TRANSACTION = 600.0
NAMED = 3


async def check_connections(database: Database) -> Check:
    async with database.connection() as connection:
        found = await store.select_connections(connection)
    finding = f"{found.used} of {found.limit} in use"
    if found.used > FEW_LEFT * found.limit:
        advice = "Raise max_connections of PostgreSQL, or run fewer workers or API processes."
        return warn("connections", finding, advice)
    return ok("connections", finding)


async def check_vacuum(database: Database) -> Check:
    async with database.connection() as connection:
        runs = await store.select_autovacuum(connection)
        litter = await store.select_litter(connection, dead=MUCH_DEAD, share=DEAD_SHARE)
    if not runs:
        advice = "Set autovacuum and track_counts to on in PostgreSQL."
        return warn("vacuum", "autovacuum is off", advice)
    if litter:
        names = ", ".join(f"{t.name} ({t.dead} dead, {t.live} live)" for t in litter[:NAMED])
        advice = f"VACUUM {litter[0].name}; if it comes back, give autovacuum more to do with."
        return warn("vacuum", f"falls behind: {names}", advice)
    return ok("vacuum", "autovacuum keeps up")


async def check_transactions(database: Database) -> Check:
    async with database.connection() as connection:
        oldest = await store.select_open_transaction(connection)
    if oldest is None or oldest.seconds < LONG_TRANSACTION:
        return ok("transactions", "none is old")
    return warn(
        "transactions",
        f"one is open for {oldest.seconds:.0f} s ({oldest.who})",
        "Forager opens none that long: end it there, or with pg_terminate_backend.",
    )
