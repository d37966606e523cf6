"""RabbitMQ from its Debian package: a separate node with a separate epmd."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.servers.obtaining import need_packages, run
from services.servers.server import Server, free_port

# not the wrappers in /usr/sbin: these change the user, and know only the node of the package
PROGRAMS = Path("/usr/lib/rabbitmq/bin")
AMQP_0_9_1 = b"AMQP\x00\x00\x09\x01"
METHOD_FRAME = b"\x01"
ENOUGH_DISK = "50MB"
# more than any disk has
NO_DISK = "1000000GB"

CONFIGURATION = """\
listeners.tcp.1 = 127.0.0.1:{port}
disk_free_limit.absolute = {enough}
vm_memory_high_watermark.absolute = 512MB
raft.wal_max_size_bytes = 33554432
log.console = true
log.console.level = warning
log.file = false
"""


class RabbitMQ(Server):
    """A broker: `url` for clients, and its troubles at one's command."""

    name = "rabbitmq"

    def __init__(self, folder: Path, port: int | None = None) -> None:
        super().__init__(folder, port)
        self._epmd_port = free_port()
        self._distribution_port = free_port()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def variables(self) -> dict[str, str]:
        return {"FORAGER_BROKER_URL": self.url}

    @classmethod
    def obtain(cls) -> None:
        need_packages({str(PROGRAMS / "rabbitmq-server"): "rabbitmq-server"})

    def configure(self) -> None:
        text = CONFIGURATION.format(port=self.port, enough=ENOUGH_DISK)
        (self.folder / "rabbitmq.conf").write_text(text)
        (self.folder / "enabled_plugins").write_text("[].\n")

    def command(self) -> list[str]:
        return [str(PROGRAMS / "rabbitmq-server")]

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),  # where the cookie is
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": "forager@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none"
            ),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_SCHEMA_DIR": str(self.folder / "schema"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "node.pid"),
        }

    def is_ready(self) -> bool:
        """The listener is the last thing that a node starts."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as line:
            line.sendall(AMQP_0_9_1)
            return line.recv(1) == METHOD_FRAME

    def control(self, *arguments: str) -> str:
        """`rabbitmqctl`: what it printed. The node must run."""
        # never an epmd of rabbitmqctl's own: nothing would end it
        environment = self.environment() | {"ERL_FLAGS": "-start_epmd false"}
        return run([str(PROGRAMS / "rabbitmqctl"), "--quiet", *arguments], environment)

    def stop_app(self) -> None:
        """The broker stops; its Erlang machine stays. All connections are closed."""
        self.control("stop_app")

    def start_app(self) -> None:
        self.control("start_app")
        self.wait_until_ready()

    @contextmanager
    def disk_alarm(self) -> Iterator[None]:
        """As if the disk were full: publishers are blocked, consumers go on."""
        self.control("set_disk_free_limit", NO_DISK)
        try:
            yield
        finally:
            self.control("set_disk_free_limit", ENOUGH_DISK)
