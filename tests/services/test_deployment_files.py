"""Deployment files, checked with the tools and schemas of their owners."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from forager.cli.main import COMMANDS
from forager.settings import Settings
from services.servers.obtaining import BUILT, build_once, need_packages, need_program, run

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
GRACE = Settings.model_fields["shutdown_grace"].default
MANIFEST = yaml.safe_load((DEPLOY / "kubernetes/forager.yaml").read_text())
POD_OWNERS = [item for item in MANIFEST["items"] if item["kind"] == "Deployment"]
# the oldest that is supported somewhere, and the newest that the checker knows
KUBERNETES = ("1.30", "1.34")
# the types of the version in compose.yaml: the server itself is published only as a binary
GRAFANA = ("@grafana/schema@12.1.1", "typescript@5.9")
DASHBOARD_TYPE = "@grafana/schema/dist/types/raw/dashboard/x/dashboard_types.gen"


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    need_packages({"/usr/bin/systemd-analyze": "systemd"})
    for unit in UNITS:
        text = unit.read_text().replace("/opt/forager/bin/forager", sys.executable)
        (tmp_path / unit.name.replace("@", "@1")).write_text(text)
    assert not run(["systemd-analyze", "verify", "--man=no", *map(str, tmp_path.iterdir())])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_unit_starts_a_command_and_gives_it_time_to_stop(unit: Path) -> None:
    lines = dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line[1:])
    assert lines["ExecStart"].split()[1] in COMMANDS
    assert int(lines["TimeoutStopSec"]) > GRACE
    assert lines["KillMode"] == "mixed"


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_schema_accepts_the_manifests(version: str) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="`make services` installs it")
    for item in MANIFEST["items"]:
        validator.validate(item, version, strict=True)


@pytest.mark.parametrize("item", POD_OWNERS, ids=lambda item: item["metadata"]["name"])
def test_pod_is_restricted_and_gets_time_to_stop(item: dict[str, Any]) -> None:
    pod = item["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["terminationGracePeriodSeconds"] > GRACE
    assert container["args"][0] in COMMANDS
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_dashboard_has_the_types_of_grafana(tmp_path: Path) -> None:
    def install(folder: Path) -> None:
        options = ["--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]
        run([need_program("npm", "Node.js"), "install", *options, str(folder), *GRAFANA])

    modules = build_once(BUILT / "grafana-schema-12.1.1", install) / "node_modules"
    dashboard = (DEPLOY / "grafana/forager.json").read_text().strip()
    source = tmp_path / "dashboard.ts"
    source.write_text(
        f"import type {{ Dashboard }} from '{modules / DASHBOARD_TYPE}';\n"
        f"export const dashboard = {dashboard} satisfies Partial<Dashboard>;\n"
    )
    compiler = [str(modules / ".bin/tsc"), "--noEmit", "--strict", "--skipLibCheck", str(source)]
    assert not run(compiler, cwd=tmp_path)
