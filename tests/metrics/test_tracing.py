"""One trace follows a URL from the request for it to its publication, over three processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.client import Api
from api.server_process import api_process
from forager import tracing
from forager.logs import configure_logs
from forager.settings import Settings
from metrics.collector import Collector, collector
from servers.site import Site
from support.waiting import eventually

FORAGER = Path(sys.executable).parent / "forager"
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"
LIMIT = 300.0


@pytest.fixture
def traces() -> Iterator[Collector]:
    with collector() as found:
        yield found


@pytest.mark.timeout(900)
async def test_a_url_is_followed_from_the_request_to_its_publication(
    traces: Collector, database_url: str, site: Site, tmp_path: Path
) -> None:
    environment = {
        "FORAGER_DATABASE_URL": database_url,
        "FORAGER_TRACES_URL": traces.url,
        "FORAGER_LOG_LEVEL": "info",
    }
    order = {"urls": [site.url], "allow_private": True}
    with api_process(tmp_path, **environment) as address:
        async with Api(address) as client:
            path, headers = "/api/v1/crawls", {"traceparent": TRACEPARENT}
            answer = await client.post(path, order, headers=headers)
            assert answer.status == 202, answer.body
        with subprocess.Popen(
            [FORAGER, "worker", "--no-tasks"],
            env=os.environ | environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as worker:
            try:
                await eventually(lambda: traces.named("publish") and traces.named("run"), LIMIT)
            finally:
                worker.terminate()
    await eventually(lambda: traces.named("enqueue"), LIMIT)

    [request] = traces.named("POST /api/v1/crawls")
    [enqueue] = traces.named("enqueue")
    [run] = traces.named("run")
    [publish] = traces.named("publish")
    pages = {span.attributes["url.full"]: span for span in traces.named("page")}
    commits = traces.named("commit")
    everything = [request, enqueue, run, publish, *pages.values(), *commits]
    assert {span.trace for span in everything} == {TRACE}
    assert (request.parent, enqueue.parent, run.parent) == (CALLER, request.id, enqueue.id)
    assert {span.parent for span in (publish, *pages.values(), *commits)} == {run.id}
    assert pages.keys() == {f"{site.url}{path}" for path in ("/", "/a", "/b", "/gone")}
    assert pages[f"{site.url}/a"].attributes["outcome"] == "fetched"
    home = pages[f"{site.url}/"]
    assert {span.name for span in traces.spans if span.parent == home.id} == {"fetch", "extract"}
    assert {request.service, run.service} == {"forager api", "forager runner"}


def test_nothing_is_imported_unless_it_is_asked_for() -> None:
    code = (
        "import sys, forager.jobs.__main__, forager.crawl.job, forager.tasks.__main__\n"
        "import forager.tracing\n"
        "from forager.settings import Settings\n"
        "with forager.tracing.tracing(Settings(), 'test'), forager.tracing.span('x') as span:\n"
        "    span.set_attributes({'a': 1})\n"
        "assert forager.tracing.traceparent() is None\n"
        "assert not any(name.startswith('opentelemetry') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_standard_variable_is_enough(
    traces: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not tracing.is_wanted(Settings())
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", traces.url)
    with tracing.tracing(Settings(), "test"), tracing.span("outer"):
        with tracing.span("inner"):
            parent = tracing.traceparent()
        with tracing.span("elsewhere", parent=parent):
            pass
    by_name = {span.name: span for span in traces.spans}
    assert by_name["inner"].parent == by_name["outer"].id
    assert by_name["elsewhere"].parent == by_name["inner"].id
    assert tracing.traceparent() is None


def test_a_collector_that_does_not_answer_delays_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of the collector belongs to a server that never responds."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        monkeypatch.setattr(tracing, "SHUTDOWN_LIMIT", 0.1)
        with tracing.tracing(Settings(traces_url=url), "test"), tracing.span("lost"):
            pass
        left = [thread for thread in threading.enumerate() if thread.name == "last traces"]
        assert all(thread.daemon for thread in left)
    for thread in left:
        thread.join(60)


def test_a_key_of_the_collector_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("warning")
    url = "http://127.0.0.1:1/?key=swordfish"
    with tracing.tracing(Settings(traces_url=url), "test"), tracing.span("lost"):
        pass
    configure_logs("critical")
    logged = capsys.readouterr().err
    assert "traces are lost" in logged
    assert "key=" not in logged


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://c.example/x/v1/traces", "https://c.example/x/v1/traces"),
        ("https://c.example/?key=a/b", "https://c.example/v1/traces?key=a/b"),
        ("https://c.example/v1/traces?key=a", "https://c.example/v1/traces?key=a"),
        (None, None),
    ],
)
def test_where_traces_are_sent(given: str | None, sent: str | None) -> None:
    assert tracing._endpoint(given) == sent
