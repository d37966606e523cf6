"""PgBouncer from its Debian package, in transaction mode, in front of a PostgreSQL."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from services.servers.obtaining import need_packages, need_program
from services.servers.server import Server

PROGRAM = "/usr/sbin/pgbouncer"

# of statements outside transactions: the settings that the page about PgBouncer requires
LIMITS = (
    "SET statement_timeout = 60000; SET lock_timeout = 10000;"
    " SET idle_in_transaction_session_timeout = 10000"
)

CONFIGURATION = """\
[databases]
* = {target} connect_query='{limits}'

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = {pool_size}
ignore_startup_parameters = extra_float_digits
server_reset_query_always = 0
admin_users = forager
"""


class PgBouncer(Server):
    """`url` leads through the pool to any database of the server behind it."""

    name = "pgbouncer"

    def __init__(
        self, folder: Path, server: str, *, pool_size: int = 8, port: int | None = None
    ) -> None:
        super().__init__(folder, port)
        self.direct_url = server
        self._server = conninfo_to_dict(server)
        self._pool_size = pool_size

    def url(self, database: str) -> str:
        """The URL of a database of the server, through the pool."""
        user = self._server.get("user", "postgres")
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def through(self, url: str) -> str:
        """The same database as this URL's, through the pool."""
        return self.url(str(conninfo_to_dict(url)["dbname"]))

    def variables(self) -> dict[str, str]:
        return {
            "FORAGER_DATABASE_URL": self.url(str(self._server.get("dbname", "postgres"))),
            "FORAGER_DATABASE_DIRECT_URL": self.direct_url,
        }

    @classmethod
    def obtain(cls) -> None:
        need_packages({PROGRAM: "pgbouncer"})

    def configure(self) -> None:
        known = {key: self._server[key] for key in ("host", "port", "user") if key in self._server}
        target = " ".join(f"{key}={value}" for key, value in known.items())
        text = CONFIGURATION.format(
            target=target, limits=LIMITS, port=self.port, pool_size=self._pool_size
        )
        (self.folder / "pgbouncer.ini").write_text(text)

    def command(self) -> list[str]:
        return [*_not_as_root(), PROGRAM, str(self.folder / "pgbouncer.ini")]

    def is_ready(self) -> bool:
        try:
            self.show("VERSION")
        except psycopg.OperationalError:
            return False
        return True

    def show(self, what: str) -> list[dict[str, object]]:
        """What its console says: POOLS, CLIENTS, SERVERS, STATS."""
        console = f"postgresql://forager@127.0.0.1:{self.port}/pgbouncer"
        with psycopg.connect(console, autocommit=True, connect_timeout=5) as connection:
            cursor = psycopg.ClientCursor(connection, row_factory=psycopg.rows.dict_row)
            return cursor.execute(f"SHOW {what}".encode()).fetchall()


def _not_as_root() -> list[str]:
    """It refuses root; in a separate namespace root has no rights, and its files stay root's."""
    if os.geteuid() != 0:
        return []
    unshare = need_program("unshare", "util-linux")
    return [unshare, "--user", "--map-user=65534", "--map-group=65534", "--"]
