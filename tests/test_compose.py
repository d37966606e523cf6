"""The Dockerfile and compose.yaml, as far as they can be held true without a container engine."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from dockerfile_parse import DockerfileParser

from forager.cli.main import COMMANDS
from forager.settings import ENV_OTHER, Settings, env_name

ROOT = Path(__file__).parents[1]
SETTING = re.compile(r"\bFORAGER_[A-Z_]+\b")
INTERPOLATED = re.compile(r"(?<!\$)\$\{(\w+)(:[-?])?([^}]*)\}")
SECRET = re.compile(r"PASS|SECRET|KEY$|TOKEN", re.IGNORECASE)
KNOWN = {env_name(name) for name in Settings.model_fields} | ENV_OTHER


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found


@pytest.fixture(scope="module")
def dockerfile() -> list[dict[str, Any]]:
    parser = DockerfileParser(str(ROOT / "Dockerfile"))
    return [dict(step) for step in parser.structure if step["instruction"] != "COMMENT"]


def test_compose_file_follows_the_specification() -> None:
    checker = Path(sys.executable).with_name("check-jsonschema")
    done = subprocess.run(
        [checker, "--builtin-schema", "vendor.compose-spec", ROOT / "compose.yaml"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_service_is_bounded_and_looked_after(services: dict[str, Any]) -> None:
    for name, service in services.items():
        if name == "bucket":  # runs once
            continue
        assert service["restart"] == "unless-stopped", name
        assert {"cpus", "memory"} <= set(service["deploy"]["resources"]["limits"]), name
        assert "healthcheck" in service or service["build"] == ".", name
        if "image" in service and "build" not in service:
            assert re.search(r":[^:]*\d", service["image"]), f"{name}: which version?"


def test_only_this_machine_reaches_what_is_published(services: dict[str, Any]) -> None:
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_no_secret_is_written_down(services: dict[str, Any]) -> None:
    for name, service in services.items():
        for key, value in service.get("environment", {}).items():
            if SECRET.search(key):
                assert INTERPOLATED.fullmatch(value), f"{name}: {key}"
            for found in INTERPOLATED.finditer(value):
                assert found[2] == ":?" or not found[3], f"{name}: {key} has a default"


@pytest.mark.parametrize("name", ["rabbitmq", "minio", "clickhouse", "grafana"])
def test_a_server_refuses_an_empty_password(services: dict[str, Any], name: str) -> None:
    service = services[name]
    (variable,) = [key for key in service["environment"] if "PASS" in key]
    command = [*service["entrypoint"], *service.get("command", ())]

    def start(password: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [part.replace("$$", "$") for part in command],
            env={variable: password, "PATH": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=60,
        )

    refused = start("")
    assert refused.returncode not in (0, 127)
    assert f"{variable}: is empty" in refused.stderr
    # with a password, the guard executes the entry point of the image, which is not here
    assert start("x").returncode == 127


def test_optional_passwords_are_not_required_without_their_profile(
    services: dict[str, Any],
) -> None:
    """Compose interpolates the whole file, also the services of profiles that are not active."""
    for service in services.values():
        if "profiles" in service and service.get("image") != "forager:local":
            required = {
                found[1]
                for value in service.get("environment", {}).values()
                for found in INTERPOLATED.finditer(value)
                if found[2] == ":?"
            }
            assert required <= {"POSTGRES_PASSWORD"}


def test_everything_named_is_there(compose: dict[str, Any], services: dict[str, Any]) -> None:
    named: set[str] = set()
    for name, service in services.items():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (ROOT / source).exists(), f"{name}: {source}"
            else:
                named.add(source)
        assert set(service.get("depends_on", ())) <= set(services), name
        assert set(service["networks"]) <= set(compose["networks"]), name
    assert named == set(compose["volumes"])


@pytest.mark.parametrize(
    "path", ["compose.yaml", "Dockerfile", "docs/howto/deploy-with-compose.md"]
)
def test_every_setting_named_is_one(path: str) -> None:
    named = set(SETTING.findall((ROOT / path).read_text()))
    assert named
    assert named <= KNOWN


def test_every_command_is_one(services: dict[str, Any], dockerfile: list[dict[str, Any]]) -> None:
    ours = [service for service in services.values() if service.get("image") == "forager:local"]
    started = {service["command"][0] for service in ours if "entrypoint" not in service}
    assert {"api", "worker", "scheduler"} <= started <= set(COMMANDS)
    (command,) = [step["value"] for step in dockerfile if step["instruction"] == "CMD"]
    assert set(yaml.safe_load(command)) <= set(COMMANDS)


def test_prometheus_and_grafana_find_each_other(services: dict[str, Any]) -> None:
    scraped = yaml.safe_load((ROOT / "deploy/prometheus/compose.yml").read_text())
    targets = scraped["scrape_configs"][0]["static_configs"][0]["targets"]
    assert targets == [f"api:{Settings.model_fields['api_port'].default}"]
    for rules in scraped["rule_files"]:
        assert (ROOT / "deploy/prometheus" / rules).exists()
    provisioned = ROOT / "deploy/grafana/provisioning"
    (source,) = yaml.safe_load((provisioned / "datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((provisioned / "dashboards/forager.yml").read_text())["providers"]
    mounted = {volume.split(":")[1] for volume in services["grafana"]["volumes"]}
    assert f"{provider['options']['path']}/forager.json" in mounted


def test_image_is_small_and_runs_as_nobody_special(dockerfile: list[dict[str, Any]]) -> None:
    stages = [i for i, step in enumerate(dockerfile) if step["instruction"] == "FROM"]
    assert len(stages) == 2
    last = dockerfile[stages[-1] :]
    (user,) = [step["value"] for step in last if step["instruction"] == "USER"]
    assert not user.startswith(("0", "root"))
    copied = [step["value"] for step in last if step["instruction"] == "COPY"]
    assert all(value.startswith("--from=build ") for value in copied)
    (check,) = [step["value"] for step in last if step["instruction"] == "HEALTHCHECK"]
    assert "/healthz" in check


def test_build_gets_what_it_copies(dockerfile: list[dict[str, Any]]) -> None:
    kept = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    for step in dockerfile:
        if step["instruction"] == "COPY" and "--from" not in step["value"]:
            for source in shlex.split(step["value"])[:-1]:
                assert (ROOT / source).exists(), source
                assert any(fnmatch(source, pattern) for pattern in kept), source


def test_extras_of_the_image_exist(dockerfile: list[dict[str, Any]]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    arguments = [step["value"] for step in dockerfile if step["instruction"] == "ARG"]
    (extras,) = [value for value in arguments if value.startswith("EXTRAS=")]
    assert set(extras.removeprefix("EXTRAS=").split(",")) <= set(project["optional-dependencies"])


def test_workers_get_more_time_than_their_grace(services: dict[str, Any]) -> None:
    grace = Settings.model_fields["shutdown_grace"].default
    for name in ("worker", "celery"):
        assert int(services[name]["stop_grace_period"].removesuffix("s")) > grace


def test_env_example_names_every_secret(services: dict[str, Any]) -> None:
    text = (ROOT / "compose.yaml").read_text()
    named = {found[1] for found in INTERPOLATED.finditer(text)}
    example = re.findall(r"^(\w+)=$", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert set(example) == named
