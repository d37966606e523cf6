"""The PostgreSQL that comes with Forager: started by the first process, stopped after the last."""

from forager.db.embedded.use import (
    ServerStatus,
    ServerUse,
    join_server,
    server_status,
    stop_lingering,
)

__all__ = ["ServerStatus", "ServerUse", "join_server", "server_status", "stop_lingering"]
