"""The server's settings, written anew at each start so that they follow Forager's version."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from forager.db.embedded.folder import ServerFolder

FORAGER_CONF = "postgresql.forager.conf"
_MB = 1024 * 1024

# replaces the file that initdb wrote: ours first, so that a person's own lines win
MAIN_CONF = f"""\
# Forager rewrites {FORAGER_CONF} at each start. Settings of your own belong below.
include_if_exists = '{FORAGER_CONF}'
"""

_SETTINGS = {
    "max_connections": "200",
    "listen_addresses": "''",
    "unix_socket_permissions": "0700",
    "client_connection_check_interval": "'10s'",
    "idle_in_transaction_session_timeout": "'10min'",
    # a laptop or a small server with a solid-state disk; a commit is on disk when it returns
    "synchronous_commit": "on",
    "work_mem": "'8MB'",
    "random_page_cost": "1.1",
    "jit": "off",
    # the wheel's server has only pglz for it, which took longer than writing the bytes
    "wal_compression": "off",
    "max_wal_size": "'2GB'",
    "min_wal_size": "'160MB'",
    "checkpoint_timeout": "'10min'",
    # queue tables turn over quickly: clean often, in small portions
    "autovacuum_naptime": "'20s'",
    "autovacuum_vacuum_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.05",
    "autovacuum_vacuum_insert_scale_factor": "0.1",
    "gin_pending_list_limit": "'16MB'",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "lc_messages": "'C'",
    # clients see their own errors; the log tells of the server, and does not hold crawled text
    "logging_collector": "off",
    "log_destination": "'stderr'",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "log_line_prefix": "'%m [%p] '",
}


def write_configuration(folder: ServerFolder) -> None:
    """Replace the settings in one step: a crash leaves the old file or the new one."""
    path = folder.data / FORAGER_CONF
    draft = path.with_suffix(".new")
    _write_private(draft, configuration_text())
    folder.hand_over(draft)
    draft.replace(path)


def configuration_text(memory_bytes: int | None = None) -> str:
    """The settings for a machine with this much memory."""
    memory = psutil.virtual_memory().total if memory_bytes is None else memory_bytes
    settings = _SETTINGS | {
        "shared_buffers": f"'{256 if memory >= 4096 * _MB else 128}MB'",
        "effective_cache_size": f"'{max(256, memory // 2 // _MB)}MB'",
        "maintenance_work_mem": f"'{128 if memory >= 4096 * _MB else 64}MB'",
    }
    return "".join(f"{name} = {value}\n" for name, value in sorted(settings.items()))


def _write_private(path: Path, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
