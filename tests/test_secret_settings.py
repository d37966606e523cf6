"""No output of Forager contains a secret setting, whatever its form."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from forager.db.database import Database
from forager.errors import InvalidInput
from forager.settings import Settings, env_name
from forager.settings.loading import load_settings, shown_settings
from forager.web.app import dashboard
from support.api_server import api_server
from support.cli import forager_process
from web.visitor import Visitor

MARKER = "hunter2marker"
SECRETS = [
    name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)
]
SCHEMES = {
    "database_url": "postgresql",
    "database_pool_url": "postgresql",
    "broker_url": "amqp",
    "opensearch_url": "http",
    "clickhouse_url": "clickhouse",
    "smtp_url": "smtp",
}


def marked_environment(home: Path, **others: str) -> dict[str, str]:
    """A marker in every secret setting, and in every part of a URL that may hold a secret."""
    filled = {
        env_name(name): f"{SCHEMES[name]}://me:{MARKER}@127.0.0.1:1/x?password={MARKER}"
        if name.endswith("_url")
        else f"{MARKER:A<43}="  # 32 bytes in base64
        for name in SECRETS
    }
    return {
        **filled,
        "FORAGER_HOME": str(home),
        "FORAGER_SMTP_FROM": "me@example.com",
        "FORAGER_DISPATCH": "celery",
        "FORAGER_SEARCH": "opensearch",
        "FORAGER_EMBEDDINGS": f"http://me:{MARKER}@127.0.0.1:1/v1?key={MARKER}",
        "FORAGER_TRACES_URL": f"http://{MARKER}@127.0.0.1:1/?key={MARKER}",
        "FORAGER_ARCHIVE_URL": f"s3://key:{MARKER}@bucket/pages?secret={MARKER}",
        **others,
    }


def test_every_secret_is_either_a_url_or_masked_whole() -> None:
    assert set(SCHEMES) == {name for name in SECRETS if name.endswith("_url")}
    assert len(SECRETS) > len(SCHEMES)


@pytest.mark.parametrize("command", [("config", "show"), ("config", "show", "--json")])
def test_config_shows_no_secret(command: tuple[str, ...], tmp_path: Path) -> None:
    shown = forager_process(*command, **marked_environment(tmp_path))
    assert shown.code == 0, shown.err
    assert "secret_key" in shown.out
    assert MARKER not in shown.out + shown.err


@pytest.mark.parametrize("reachable", [True, False])
def test_doctor_and_support_bundle_contain_no_secret(
    database_url: str, tmp_path: Path, reachable: bool
) -> None:
    others = {"FORAGER_DATABASE_URL": database_url} if reachable else {}
    environment = marked_environment(tmp_path, **others)
    file = tmp_path / "bundle.json"
    bundled = forager_process("--log-level", "debug", "support-bundle", file, **environment)
    assert bundled.code == 0, bundled.err
    examined = forager_process("--log-level", "debug", "doctor", **environment)
    assert '"secret_key": "***"' in file.read_text()
    for text in (file.read_text(), bundled.out, bundled.err, examined.out, examined.err):
        assert MARKER not in text


async def test_dashboard_shows_no_secret(
    database: Database,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name, value in marked_environment(settings.home).items():
        monkeypatch.setenv(name, value)
    marked = load_settings(home=settings.home)
    assert MARKER not in repr(marked)
    async with api_server(marked, database, extend=dashboard) as address, Visitor(address) as who:
        shown = await who.get("/settings")
    assert shown.status == 200
    assert "secret_key" in shown.text
    assert MARKER not in shown.text
    assert MARKER not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "given", "shown"),
    [
        ("secret_key", f"https://{MARKER}/", "***"),
        ("embeddings_key", f"sk-{MARKER}", "***"),
        ("broker_url", f"amqp://{MARKER}@mq.example//", "amqp://***@mq.example//"),
        ("opensearch_url", f"https://u:p/{MARKER}@es.example", "https://u:***@es.example"),
        ("database_url", "postgresql://me@db.example/x", "postgresql://me@db.example/x"),
        ("database_url", f"no URL {MARKER}", "***"),
        ("traces_url", f"https://t.example/#{MARKER}", "https://t.example/?***"),
    ],
)
def test_secrets_are_masked_in_any_form(name: str, given: str, shown: str) -> None:
    kind = type(load_settings()).model_fields[name].annotation
    value = given if kind == (str | None) else SecretStr(given)
    settings = Settings().model_copy(update={name: value})
    [found] = [each for each in shown_settings(settings, {}) if each.name == name]
    assert found.value == shown


def test_a_refused_url_is_repeated_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_TRACES_URL", f"ftp://me:{MARKER}@t.example")
    with pytest.raises(InvalidInput, match="TRACES_URL") as refused:
        load_settings()
    assert MARKER not in str(refused.value)
