from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from forager.errors import InvalidInput
from forager.settings import Origin, Settings, load_settings, origins
from forager.settings.loading import shown_settings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_flag_over_environment_over_file_over_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "forager.toml").write_text("worker_capacity = 3\nmax_retries = 3\nretry_delay = 3")
    monkeypatch.setenv("FORAGER_WORKER_CAPACITY", "4")
    monkeypatch.setenv("FORAGER_MAX_RETRIES", "4")
    settings = load_settings(worker_capacity=5, log_level=None)
    assert (settings.worker_capacity, settings.max_retries, settings.retry_delay) == (5, 4, 3)
    origin = origins({"worker_capacity"})
    assert origin["worker_capacity"] is Origin.FLAG
    assert origin["max_retries"] is Origin.ENVIRONMENT
    assert origin["retry_delay"] is Origin.FILE
    assert origin["poll_interval"] is Origin.DEFAULT


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", "")
    assert load_settings().database_url is None
    assert origins()["database_url"] is Origin.DEFAULT


def test_the_home_has_one_spelling(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert load_settings(home="~/x/../y").home == folder / "y"
    assert load_settings(home="y").home == folder / "y"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"home": ""}, "--home: the home folder must be named"),
        ({"home": "~nobody-of-this-name/x"}, "use an absolute path"),
        ({"poll_interval": "inf"}, "--poll-interval"),
        ({"poll_interval": "nan"}, "--poll-interval"),
        ({"stall_limit": 0.5}, "more than 1"),
        ({"poll_interval": 20}, "a worker beats only when it looks"),
        ({"heartbeat_interval": 90, "watchdog_interval": 100}, "must be less than lease_limit"),
        ({"stall_limit": 90}, "must be found before it ends itself"),
        ({"stale_after": 90}, "while its runner still writes"),
        ({"progress_limit": 5}, "must be at most progress_limit (5 s)"),
        ({"retry_delay": 601}, "cannot be longer than the longest"),
        ({"log_level": "loud"}, "got 'loud'"),
        ({"worker_capacity": 0}, "--worker-capacity"),
        ({"user_agent": "a\r\nX-Evil: 1"}, "line break"),
    ],
)
def test_what_cannot_work_is_refused_in_words(values: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_settings(**values)
    assert words in refused.value.message


def test_the_refusal_names_where_the_value_was_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "forager.toml").write_text("max_retries = -1")
    with pytest.raises(InvalidInput, match=r"'max_retries' in forager\.toml"):
        load_settings()
    monkeypatch.setenv("FORAGER_MAX_RETRIES", "many")
    with pytest.raises(InvalidInput, match=r"FORAGER_MAX_RETRIES.*got 'many'"):
        load_settings()


def test_a_secret_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_DATABASE_URL", "mysql://me:hunter2@host/db")
    with pytest.raises(InvalidInput, match="expected postgresql://") as refused:
        load_settings()
    assert "hunter2" not in str(refused.value)


def test_what_a_worker_hands_to_its_runner_is_the_same(folder: Path) -> None:
    settings = load_settings(job_modules="a, b", home=folder)
    assert settings.job_modules == ("a", "b")
    assert Settings(**settings.model_dump(mode="json")) == settings


ENGINES = {
    "BROKER_URL": "amqp", "OPENSEARCH_URL": "https", "CLICKHOUSE_URL": "clickhouse",
}  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    "password",
    [
        "hunter2/x",
        "hunter2#x",
        "hunter2?x",
        "[hunter2]",
        "12/hunter2",
        "hunter2\N{FULLWIDTH SOLIDUS}",
    ],
)
def test_an_unescaped_password_is_not_shown(
    name: str, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{ENGINES[name]}://user:{password}@engine.example:8123/db"
    monkeypatch.setenv(f"FORAGER_{name}", url)
    with pytest.raises(
        InvalidInput, match=f"FORAGER_{name}: expected {ENGINES[name]}://"
    ) as refused:
        load_settings()
    assert "hunter2" not in f"{refused.value} {refused.value.__cause__}"
    monkeypatch.setenv(f"FORAGER_{name}", f"{ENGINES[name]}://user:%2F%5B%40@engine.example/db")
    load_settings()


def test_brokers_may_stand_in_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_BROKER_URL", "amqp://u:p@one.example//;amqps://u:p@two.example//")
    assert load_settings().broker_url is not None
    monkeypatch.setenv("FORAGER_BROKER_URL", "amqp://u:12;hunter2@one.example//")
    with pytest.raises(InvalidInput, match="BROKER_URL"):
        load_settings()


def test_children_get_every_secret_of_the_model_and_nothing_is_lost() -> None:
    secrets = {
        name: SecretStr(f"postgresql://user:{name}@localhost/x")
        for name, field in Settings.model_fields.items()
        if "SecretStr" in str(field.annotation) and name != "database_url"
    }
    assert len(secrets) >= 5
    settings = Settings().model_copy(update=secrets)
    given = settings.for_child_process()
    assert {name: given[name] for name in secrets} == {
        name: secret.get_secret_value() for name, secret in secrets.items()
    }
    assert "database_url" not in given
    assert Settings(**Settings().for_child_process()) == Settings()


@pytest.mark.parametrize(
    ("name", "given", "shown"),
    [
        ("traces_url", "https://me:pa@ss@traces.example/", "https://me:***@traces.example/"),
        ("traces_url", "https://token@traces.example/", "https://***@traces.example/"),
        ("traces_url", "http://127.0.0.1:4318", "http://127.0.0.1:4318"),
        ("archive_url", "s3://key:hidden@bucket/pages", "s3://key:***@bucket/pages"),
        ("archive_old_url", "s3://bucket/pages?secret=hidden", "s3://bucket/pages?***"),
    ],
)
def test_credentials_of_every_url_are_masked(name: str, given: str, shown: str) -> None:
    settings = Settings.model_validate({name: given})
    [setting] = [each for each in shown_settings(settings, {}) if each.name == name]
    assert setting.value == shown
    assert given not in repr(settings)
