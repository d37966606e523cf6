"""OpenSearch and Elasticsearch, assembled with Maven from their published artifacts: one node."""

from __future__ import annotations

import hashlib
import json
import shutil
import urllib.request
from pathlib import Path

from services.servers.obtaining import BUILT, build_once, need_program, run
from services.servers.server import Server, free_port

FOLDER = Path(__file__).parent
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

CONFIGURATION = """\
cluster.name: forager
discovery.type: single-node
network.host: 127.0.0.1
http.port: {port}
transport.port: {transport_port}
node.processors: 2
cluster.routing.allocation.disk.threshold_enabled: false
"""

LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p %c{1.} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


class OpenSearch(Server):
    """A search engine at `url`, without security."""

    name = "opensearch"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def variables(self) -> dict[str, str]:
        return {"FORAGER_OPENSEARCH_URL": self.url}

    @classmethod
    def obtain(cls) -> None:
        build_once(cls.program_folder(), cls._build)

    def configure(self) -> None:
        config = self.folder / "config"
        config.mkdir(exist_ok=True)
        text = CONFIGURATION.format(port=self.port, transport_port=free_port())
        (config / f"{self.name}.yml").write_text(text)
        (config / "log4j2.properties").write_text(LOGGING)

    def command(self) -> list[str]:
        place = self.program_folder()
        return [
            need_program("java", "a Java runtime, 17 or newer"),
            "-Xms512m",
            "-Xmx512m",
            # ready sooner, on two cores, and fast enough for tests
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            "-cp",
            f"{place / 'classes'}:{place / 'lib'}/*",
            "SingleNode",
            str(self.folder),
        ]

    def is_ready(self) -> bool:
        with urllib.request.urlopen(f"{self.url}/_cluster/health", timeout=5) as answer:
            return json.load(answer)["status"] in ("green", "yellow")

    @classmethod
    def _node(cls) -> Path:
        return FOLDER / f"{cls.name}_node"

    @classmethod
    def program_folder(cls) -> Path:
        """Named after what it is made from, so that a change of that makes another."""
        node = cls._node()
        made_from = (node / "pom.xml").read_bytes() + (node / "SingleNode.java").read_bytes()
        return BUILT / f"{cls.name}-{hashlib.sha256(made_from).hexdigest()[:12]}"

    @classmethod
    def _build(cls, folder: Path) -> None:
        maven = need_program("mvn", "Maven")
        compiler = need_program("javac", "a Java development kit, 17 or newer")
        shutil.copy(cls._node() / "pom.xml", folder)
        lib = folder / "lib"
        copy = [COPY_DEPENDENCIES, "-DincludeScope=runtime", f"-DoutputDirectory={lib}"]
        run([maven, "--batch-mode", "--quiet", *copy], cwd=folder)
        classes = str(folder / "classes")
        run([compiler, "-cp", f"{lib}/*", "-d", classes, str(cls._node() / "SingleNode.java")])


class Elasticsearch(OpenSearch):
    """The last version under the Apache License, 7.10.2."""

    name = "elasticsearch"
