"""The PostgreSQL that comes with Forager: started by the first process, stopped by the last."""

from forager.db.embedded.status import ServerStatus, server_status
from forager.db.embedded.use import ServerUse, join_server

__all__ = ["ServerStatus", "ServerUse", "join_server", "server_status"]
