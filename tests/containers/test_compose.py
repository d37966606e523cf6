"""compose.yaml in real containers: `make test-containers` builds the image and runs it.

Images that cannot be pulled are replaced by stand-ins (see engine.py); the results of the last run
are in docs/howto/deploy-with-compose.md.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from containers.deployment import ROOT, Deployment
from containers.engine import ContainerError, build, podman, require_engine
from containers.stand_ins import build_all
from services.servers.server import free_port

pytestmark = pytest.mark.timeout(3600)

SITE = "http://site:8000/"
IMAGE = "localhost/forager:local"
PAGES = 61
FULL = """\
FORAGER_ARCHIVE_URL=s3://forager/archive
FORAGER_DISPATCH=celery
FORAGER_SEARCH=opensearch
FORAGER_OPENSEARCH_URL=http://opensearch:9200
FORAGER_CLICKHOUSE_URL=clickhouse://forager:{CLICKHOUSE_PASSWORD}@clickhouse:8123/forager
FORAGER_DATABASE_POOL_URL=postgresql://forager:{POSTGRES_PASSWORD}@pgbouncer:6432/forager
"""


@pytest.fixture(scope="module", autouse=True)
def images() -> None:
    require_engine()
    build_all()
    build(IMAGE, ROOT)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path_factory.mktemp("core"), "forager-core", free_port())
    try:
        deployment.key = deployment.start()
        yield deployment
    finally:
        deployment.stop()


def request(deployment: Deployment, path: str, body: dict[str, Any] | None = None) -> Any:
    headers = {"Authorization": f"Bearer {deployment.key}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    url = f"http://127.0.0.1:{deployment.port}{path}"
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.load(answer)


def crawl(deployment: Deployment, source: str, **options: object) -> str:
    body = {"urls": [SITE], "source": source, "allow_private": True, "delay": 0, **options}
    job: str = request(deployment, "/api/v1/crawls", body)["job_id"]
    return job


def status(deployment: Deployment, job: str) -> dict[str, Any]:
    found: dict[str, Any] = request(deployment, f"/api/v1/crawls/{job}")
    return found


def completed(deployment: Deployment, job: str) -> dict[str, Any]:
    deployment.wait_until(lambda: status(deployment, job)["status"] == "completed")
    return status(deployment, job)


def found_by_search(deployment: Deployment, source: str) -> bool:
    hits = request(deployment, f"/api/v1/search?q=heron&source={source}")["items"]
    return any(hit["url"].startswith(SITE) for hit in hits)


def track(deployment: Deployment) -> None:
    body = {"items": [f"{SITE}lamp"], "allow_private": True}
    request(deployment, "/api/v1/tasks", body)
    deployment.wait_until(lambda: request(deployment, "/api/v1/products")["items"])
    (product,) = request(deployment, "/api/v1/products")["items"]
    assert (product["name"], product["price"], product["currency"]) == ("Lamp", "19.90", "EUR")


def test_containers_have_no_rights_and_cannot_write(core: Deployment) -> None:
    for service in ("api", "worker", "scheduler"):
        state = core.inspect(service)
        assert state["HostConfig"]["ReadonlyRootfs"]
        assert not state["EffectiveCaps"]
        assert core.execute(service, "id", "-u").strip() == "10001"
        assert "CapEff:\t0000000000000000" in core.execute(service, "cat", "/proc/1/status")
        with pytest.raises(ContainerError, match="Read-only file system"):
            core.execute(service, "touch", "/opt/forager/file")
        core.execute(service, "touch", "/tmp/file")


def test_limits_are_those_of_the_file(core: Deployment) -> None:
    limits = core.inspect("worker")["HostConfig"]
    assert (limits["Memory"], limits["PidsLimit"]) == (8 * 2**30, 2000)
    assert core.inspect("api")["HostConfig"]["Memory"] == 2**30


def test_crawl_search_and_track(core: Deployment) -> None:
    done = completed(core, crawl(core, "site"))
    assert done["ledger"]["fetched"] == PAGES
    assert found_by_search(core, "site")
    track(core)
    assert "19.90" in core.forager("products", "history", f"{SITE}lamp")


def test_killed_worker_is_restarted_and_loses_nothing(core: Deployment) -> None:
    job = crawl(core, "killed", delay=0.3)
    core.wait_until(lambda: status(core, job)["ledger"]["fetched"] > 5)
    core.kill("worker")
    done = completed(core, job)
    assert done["ledger"]["fetched"] == PAGES
    assert core.containers("worker")


def test_three_workers_share_the_work(core: Deployment) -> None:
    core.compose("up", "--detach", "--no-build", "--scale", "worker=3")
    core.wait_until(lambda: _alive(core) == 3)
    jobs = [crawl(core, f"scaled-{number}") for number in range(3)]
    for job in jobs:
        assert completed(core, job)["ledger"]["fetched"] == PAGES
    # podman-compose does not scale down
    podman("stop", "--time", "40", *core.containers("worker")[1:])
    core.wait_until(lambda: _alive(core) == 1)


def _alive(deployment: Deployment) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{deployment.port}/metrics", timeout=60) as page:
        lines = page.read().decode().splitlines()
    label = 'forager_workers{role="jobs",state="alive"}'
    return int(next(line for line in lines if line.startswith(label)).split()[-1])


def test_new_image_continues_a_running_crawl(core: Deployment, tmp_path: Path) -> None:
    job = crawl(core, "upgraded", delay=0.3)
    core.wait_until(lambda: status(core, job)["ledger"]["fetched"] > 5)
    version = "sed -i 's/^__version__ = .*/__version__ = \"9.9.9\"/'"
    (tmp_path / "Dockerfile").write_text(
        f"FROM {IMAGE}\nUSER root\nRUN {version}"
        " /opt/forager/lib/python3.14/site-packages/forager/__init__.py\nUSER 10001:10001\n"
    )
    build(IMAGE, tmp_path)
    core.compose("up", "--detach", "--no-build", "--force-recreate", "api", "worker", "scheduler")
    core.wait_until(lambda: core.healthy("api"))
    assert core.execute("worker", "forager", "--version").split()[-1] == "9.9.9"
    done = completed(core, job)
    assert done["ledger"]["fetched"] == PAGES
    # the stopped worker gave the job back, which uses up no attempt
    events = core.json("jobs", "events", job)["items"]
    assert any(event["move"] == "release" for event in events)


def test_image_with_a_browser_renders(core: Deployment) -> None:
    """With the rights of compose.yaml: no capabilities, a read-only file system."""
    extras = "EXTRAS=parquet,celery,clickhouse,tracing,browser"
    arguments = ("--build-arg", "BROWSER=chromium", "--build-arg", extras)
    image = build("localhost/forager-render:local", ROOT, *arguments)
    networks = [f"--network={core.project}_{name}" for name in ("inside", "outside")]
    password = core.secrets["POSTGRES_PASSWORD"]
    url = f"postgresql://forager:{password}@postgres:5432/forager"
    rights = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges")
    run = ("run", "--rm", "--init", *rights, *networks, f"--env=FORAGER_DATABASE_URL={url}")
    page = podman(*run, image, "fetch", f"{SITE}app", "--allow-private", "--render", "--body")
    assert "rendered by a script" in page


def test_backup_is_restored_into_another_deployment(
    core: Deployment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("backup")
    folder.chmod(0o777)
    volume = ("--volume", f"{folder}:/backup")
    core.forager("db", "backup", "/backup/forager", options=volume)
    other = Deployment(tmp_path_factory.mktemp("restored"), "forager-restored", free_port())
    other.secrets = core.secrets
    (other.folder / ".env").write_text((core.folder / ".env").read_text())
    try:
        other.watch_health()
        other.compose("up", "--detach", "--no-build", "postgres")
        other.wait_until(lambda: other.healthy("postgres"))
        other.forager("db", "restore", "/backup/forager", options=volume)
        other.forager("archive", "verify")
        other.key = core.key
        other.compose("up", "--detach", "--no-build", "api")
        other.wait_until(lambda: other.healthy("api"))
        assert found_by_search(other, "site")
        assert request(other, "/api/v1/products")["items"]
    finally:
        other.stop()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("full")
    deployment = Deployment(folder, "forager-full", free_port(), "full")
    try:
        deployment.key = deployment.start(FULL.format(**deployment.secrets))
        yield deployment
    finally:
        deployment.stop()


def test_every_server_of_the_full_profile_is_healthy(full: Deployment) -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    checked = [
        name for name, service in services.items() if "test" in service.get("healthcheck", {})
    ]
    assert len(checked) == 8
    for name in checked:
        full.wait_until(partial(full.healthy, name))


def test_full_profile_crawls_searches_and_tracks(full: Deployment) -> None:
    full.forager("search", "reindex")
    assert completed(full, crawl(full, "site"))["ledger"]["fetched"] == PAGES
    full.wait_until(lambda: found_by_search(full, "site"))
    full.wait_until(lambda: int(_documents(full)) > 0)
    # without the other worker, Celery's own command does all of it
    workers = full.containers("worker")
    podman("stop", "--time", "40", *workers)
    track(full)
    podman("start", *workers)
    stored = full.execute("minio", "ls", "/data/forager/archive")
    assert stored.strip()
    used = full.execute("postgres", "psql", "--username=forager", "--tuples-only", "--command",
                        "SELECT count(*) FROM pg_stat_activity")  # fmt: skip
    assert int(used) < 60
    full.forager("analytics", "sync")
    report = full.forager("doctor")
    assert "problem" not in report.lower().replace("no problem", "")


def _documents(deployment: Deployment) -> str:
    rows = deployment.execute("opensearch", "curl", "--silent", "127.0.0.1:9200/_cat/count?h=count")
    return rows.strip() or "0"


def test_prometheus_answers_every_query_of_the_dashboard(full: Deployment) -> None:
    def ask(path: str) -> Any:
        return json.loads(
            full.execute("prometheus", "wget", "-qO-", f"http://127.0.0.1:9090{path}")
        )

    def scraped() -> bool:
        return any(t["health"] == "up" for t in ask("/api/v1/targets")["data"]["activeTargets"])

    full.wait_until(scraped)
    groups = ask("/api/v1/rules")["data"]["groups"]
    assert all(rule["health"] != "err" for group in groups for rule in group["rules"])
    dashboard = json.loads((ROOT / "deploy/grafana/forager.json").read_text())
    queries = [
        target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())
    ]
    assert queries
    for query in queries:
        quoted = quote(query.replace("$__rate_interval", "1m").replace("$job", ".*"))
        assert ask(f"/api/v1/query?query={quoted}")["status"] == "success", query


def test_killed_database_is_restarted_and_work_continues(full: Deployment) -> None:
    job = crawl(full, "outage", delay=0.3)
    full.wait_until(lambda: status(full, job)["ledger"]["fetched"] > 5)
    full.kill("postgres")
    full.wait_until(lambda: full.healthy("postgres"))

    def done() -> bool:
        try:
            return bool(status(full, job)["status"] == "completed")
        except (OSError, subprocess.SubprocessError):
            return False

    full.wait_until(done)
    assert status(full, job)["ledger"]["fetched"] == PAGES
