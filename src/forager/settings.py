"""One settings object: flag over FORAGER_* environment over forager.toml over default."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

import platformdirs
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from forager.errors import InvalidInput

ENV_PREFIX = "FORAGER_"
# names with the prefix that are not settings: where the file is, and what only the tests read
ENV_OTHER = {"FORAGER_CONFIG"}
ENV_TEST_PREFIX = "FORAGER_TEST_"
DATABASE_SCHEMES = ("postgresql://", "postgres://")
BROKER_SCHEMES = ("amqp://", "amqps://")
CLICKHOUSE_SCHEMES = ("clickhouse://", "clickhouses://")
DAY = 86400.0
A_YEAR = 365 * DAY
LENGTHS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY, "w": 7 * DAY}

# Finite: a wait without end would outlive every lease, and PostgreSQL has no such interval.
Seconds = Annotated[float, Field(gt=0, le=A_YEAR, allow_inf_nan=False)]
SecondsOrZero = Annotated[float, Field(ge=0, le=A_YEAR, allow_inf_nan=False)]

# Pairs that only work in this order, with what goes wrong otherwise.
LESS = (
    ("heartbeat_interval", "lease_limit", "a runner would stop before its lease could be renewed"),
    ("stall_limit", "lease_limit", "a frozen runner must be found before it ends itself"),
    ("lease_limit", "stale_after", "a job could be given away while its runner still writes"),
)
AT_MOST = (
    ("poll_interval", "heartbeat_interval", "a worker beats only when it looks for jobs"),
    ("heartbeat_interval", "watchdog_interval", "the living need time to beat between two looks"),
    ("stall_limit", "progress_limit", "a runner that is frozen makes no progress either"),
    ("retry_delay", "retry_delay_max", "the first wait cannot be longer than the longest"),
    ("task_retry_delay", "task_retry_delay_max", "the first wait cannot exceed the longest"),
    ("adaptive_min", "adaptive_max", "the shortest interval cannot exceed the longest"),
)


class LogFormat(StrEnum):
    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class Dispatch(StrEnum):
    """How tasks that are due reach the workers."""

    POSTGRES = "postgres"
    CELERY = "celery"


class Search(StrEnum):
    """What finds sections and products by their words."""

    POSTGRES = "postgres"
    OPENSEARCH = "opensearch"


class Settings(BaseSettings):
    """Everything that can be set. Times are seconds unless the name says otherwise."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,  # an empty variable is how many tools say "not set"
        extra="forbid",
        frozen=True,
        validate_default=True,
    )

    home: Path = Field(
        default_factory=lambda: platformdirs.user_data_path("forager", appauthor=False),
        description="Folder for the embedded database, the archive and secrets.",
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL 15 or newer to use instead of the embedded server.",
    )
    database_pool_url: SecretStr | None = Field(
        default=None,
        description="PgBouncer in transaction mode before that PostgreSQL; what needs a session of"
        " its own still goes to FORAGER_DATABASE_URL.",
    )
    log_level: str = Field(
        default="info",
        pattern="(?i)^(debug|info|warning|error|critical)$",
        description="Least severe log line that is shown.",
    )
    log_format: LogFormat = Field(
        default=LogFormat.AUTO,
        description="`console`, `json`, or `auto`: console on a terminal, JSON otherwise.",
    )

    # --- workers ---------------------------------------------------------------------------
    worker_capacity: int = Field(
        default=2, ge=1, le=1000, description="Jobs one worker runs at the same time."
    )
    region: str | None = Field(
        default=None,
        pattern="^[a-z0-9-]{1,32}$",
        description="Where this worker is: it also works for domains, and goes through proxies,"
        " that are tied to this region.",
    )
    poll_interval: Seconds = Field(
        default=1.0, description="How often a worker looks for jobs when nothing wakes it."
    )
    heartbeat_interval: Seconds = Field(
        default=10.0, description="How often a worker renews the leases of its jobs."
    )
    lease_limit: Seconds = Field(
        default=90.0,
        description="A runner whose lease was not renewed for this long stops itself.",
    )
    stall_limit: float = Field(
        default=60.0,
        gt=1,  # a sign of life comes once per second
        le=A_YEAR,
        allow_inf_nan=False,
        description="A runner without a sign of life for this long is frozen, and killed.",
    )
    progress_limit: Seconds = Field(
        default=900.0,
        description="A runner that lives but commits nothing for this long is stuck, and killed.",
    )
    job_modules: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Python modules, separated by commas, that register job kinds of your own.",
    )
    job_time_limit: Seconds | None = Field(
        default=None, description="Longest time one run of a job may take; none by default."
    )
    job_memory_limit_mb: int = Field(
        default=2048, ge=64, description="Memory a runner and its children may use together."
    )
    shutdown_grace: SecondsOrZero = Field(
        default=20.0, description="Time runners get to commit and leave when a worker stops."
    )

    # --- recovery --------------------------------------------------------------------------
    watchdog_interval: Seconds = Field(
        default=60.0, description="How often a worker looks for jobs of dead workers."
    )
    stale_after: Seconds = Field(
        default=120.0, description="Age of a heartbeat after which its worker counts as dead."
    )
    max_retries: int = Field(
        default=3, ge=0, le=1000, description="Retries of a job after its first run."
    )
    retry_delay: SecondsOrZero = Field(
        default=1.0, description="Wait before the first retry; doubles with each one."
    )
    retry_delay_max: SecondsOrZero = Field(
        default=600.0, description="Longest wait before a retry."
    )
    prune_after_days: float = Field(
        default=30.0, gt=0, le=36500, description="Finished jobs older than this are deleted."
    )

    # --- crawling --------------------------------------------------------------------------
    user_agent: str = Field(
        default="Forager/{version}",
        min_length=1,
        description="How Forager names itself to servers; `{version}` becomes its version.",
    )
    extraction_processes: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Processes of a crawl that read pages; by default one for two cores.",
    )
    extraction_time_limit: Seconds = Field(
        default=20.0, description="Longest time one page may take to be read."
    )
    extraction_memory_mb: int = Field(
        default=1024, ge=256, description="Memory a process that reads pages may use."
    )
    secret_key: SecretStr | None = Field(
        default=None,
        description="Key of stored secrets; by default a file in the home folder.",
    )

    # --- products --------------------------------------------------------------------------
    recrawl_every: Seconds = Field(
        default=86400.0,
        description="How often a task is crawled where neither it nor its domain says so.",
    )
    adaptive_schedule: bool = Field(
        default=False,
        description="Visit changing products more often and steady ones less, unless the domain"
        " says otherwise.",
    )
    adaptive_min: Seconds = Field(
        default=3600.0, description="Shortest interval that adaptive scheduling may arrive at."
    )
    adaptive_max: Seconds = Field(
        default=30 * 86400.0,
        description="Longest interval that adaptive scheduling may arrive at.",
    )
    scheduler_interval: Seconds = Field(
        default=1.0, description="How often the scheduler looks for tasks that are due."
    )
    task_concurrency: int = Field(
        default=32, ge=1, le=10_000, description="Tasks one worker downloads at the same time."
    )
    task_retries: int = Field(
        default=3, ge=0, le=1000, description="Retries of a task after its first attempt."
    )
    task_retry_delay: SecondsOrZero = Field(
        default=30.0, description="Wait before a task's first retry; doubles with each one."
    )
    task_retry_delay_max: SecondsOrZero = Field(
        default=6 * 3600.0, description="Longest wait before a task's retry."
    )
    task_proxies: bool = Field(
        default=False,
        description="Fetch tasks through the pool of proxies, unless their domain says otherwise.",
    )
    parser_modules: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Python modules, separated by commas, that register parsers of your own.",
    )
    images: bool = Field(default=True, description="Download the images of products.")
    image_max_mb: float = Field(
        default=10.0, gt=0, le=1000, description="Largest image file that is kept."
    )
    images_per_product: int = Field(
        default=10, ge=0, le=1000, description="Images of one product that are downloaded."
    )
    history_days: float = Field(
        default=90.0,
        gt=0,
        le=36500,
        description="Attempts, errors, extractions and events of tasks, and counts of what went"
        " through proxies, older than this go.",
    )

    # --- dispatch --------------------------------------------------------------------------
    dispatch: Dispatch = Field(
        default=Dispatch.POSTGRES,
        description="How tasks reach the workers: `postgres`, or `celery` for messages through"
        " RabbitMQ.",
    )
    broker_url: SecretStr | None = Field(
        default=None,
        description="RabbitMQ for `FORAGER_DISPATCH=celery`, as"
        " `amqp://user:password@host:5672/vhost`.",
    )
    dispatch_resend_after: Seconds = Field(
        default=30.0,
        description="A task that waits for a worker this long is told to the broker again, unless"
        " messages wait there.",
    )

    # --- search ----------------------------------------------------------------------------
    search: Search = Field(
        default=Search.POSTGRES,
        description="What looks for words: `postgres`, or `opensearch` for a search engine beside"
        " it (OpenSearch, or an Elasticsearch that speaks the same).",
    )
    opensearch_url: SecretStr | None = Field(
        default=None,
        description="The search engine, as `https://user:password@host:9200`.",
    )
    opensearch_prefix: str = Field(
        default="forager",
        pattern="^[a-z0-9][a-z0-9_-]{0,99}$",
        description="How the names of its indexes begin; another one for each Forager that uses"
        " the same engine.",
    )

    product_archive_after: float | None = Field(
        default=180 * DAY,
        ge=DAY,
        le=36500 * DAY,
        description="Products that nobody has seen for this long, and nobody looks for any more or"
        " finds again, are moved to files in the home folder (`forager products restore` brings"
        " them back); as `180d`, or `off`.",
    )

    # --- analytics -------------------------------------------------------------------------
    clickhouse_url: SecretStr | None = Field(
        default=None,
        description="ClickHouse server that `forager analytics sync` loads, and that is asked"
        " instead of the files, as `clickhouse://user:password@host:8123/database`;"
        " `clickhouses://` for TLS.",
    )

    # --- archive ---------------------------------------------------------------------------
    archive_url: str | None = Field(
        default=None,
        description="Where raw responses are kept; by default the folder `archive` in the home.",
    )
    archive_old_url: str | None = Field(
        default=None,
        description="Where they were kept before, and are read from as well while `forager archive"
        " migrate` moves them; `local` is the folder in the home.",
    )
    archive_segment_mb: int = Field(
        default=256, ge=1, description="Size at which a new archive segment is begun."
    )
    archive_max_age_days: float | None = Field(
        default=None, gt=0, description="Archived responses older than this are deleted."
    )
    archive_max_mb: int | None = Field(
        default=None, ge=1, description="Size of the archive; the oldest responses go first."
    )

    # --- api -------------------------------------------------------------------------------
    api_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address the API listens on; without a key it can only be a loopback one.",
    )
    api_port: int = Field(default=8700, ge=0, le=65535, description="Port the API listens on.")
    api_allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Names, separated by commas, that the API may be called by, beside those of"
        " this machine; `*` for any.",
    )
    api_max_body_mb: float = Field(
        default=10.0, gt=0, le=1000, description="Largest request that the API reads."
    )
    api_requests_per_minute: int | None = Field(
        default=60_000,
        ge=1,
        description="Requests of one owner that all API processes together answer in a minute,"
        " unless the owner's quota says otherwise.",
    )
    api_connections: int = Field(
        default=16, ge=2, le=1000, description="Database connections one API process may open."
    )

    # --- operating -------------------------------------------------------------------------
    metrics_open: bool = Field(
        default=False,
        description="Show `/metrics` to whoever can connect; otherwise it needs a key, as the API"
        " does.",
    )
    traces_url: str | None = Field(
        default=None,
        pattern="^https?://",
        description="Where OpenTelemetry traces are sent (OTLP over HTTP), as"
        " `http://127.0.0.1:4318`; by default to OTEL_EXPORTER_OTLP_ENDPOINT, if that is set.",
    )

    @field_validator("home", mode="after")
    @classmethod
    def _absolute(cls, home: Path) -> Path:
        """Whatever was written, one spelling: processes meet in this folder by its name."""
        if home == Path():
            raise ValueError("the home folder must be named; use an absolute path")
        try:
            return home.expanduser().resolve()
        except (RuntimeError, OSError) as error:
            raise ValueError(
                f"this folder cannot be found: {error}; use an absolute path"
            ) from None

    @field_validator("database_url", "database_pool_url", mode="after")
    @classmethod
    def _postgresql_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(DATABASE_SCHEMES):
            raise ValueError("expected postgresql://user:password@host:5432/database")
        return url

    @field_validator("broker_url", mode="after")
    @classmethod
    def _amqp_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(BROKER_SCHEMES):
            raise ValueError("expected amqp://user:password@host:5672/vhost")
        return url

    @field_validator("clickhouse_url", mode="after")
    @classmethod
    def _clickhouse_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url is None:
            return None
        text = url.get_secret_value()
        if not text.startswith(CLICKHOUSE_SCHEMES) or not urlsplit(text).hostname:
            raise ValueError("expected clickhouse://user:password@host:8123/database")
        return url

    @field_validator("product_archive_after", mode="before")
    @classmethod
    def _length_or_off(cls, value: object) -> object:
        """A bare number is refused where it is text: it would be taken for days."""
        if not isinstance(value, str):
            return value
        if value.strip().lower() == "off":
            return None
        length = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([smhdw])\s*", value.lower(), re.ASCII)
        if length is None:
            raise ValueError("expected a length of time, as 180d, or off")
        return float(length[1]) * LENGTHS[length[2]]

    @field_validator("job_modules", "parser_modules", "api_allowed_hosts", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @model_validator(mode="after")
    def _has_broker(self) -> Self:
        if self.dispatch is Dispatch.CELERY and self.broker_url is None:
            raise ValueError("dispatch is celery: broker_url must say where RabbitMQ is")
        return self

    @field_validator("opensearch_url", mode="after")
    @classmethod
    def _http_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(("http://", "https://")):
            raise ValueError("expected https://user:password@host:9200")
        return url

    @model_validator(mode="after")
    def _has_engine(self) -> Self:
        if self.search is Search.OPENSEARCH and self.opensearch_url is None:
            raise ValueError("search is opensearch, but opensearch_url is not set")
        return self

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for smaller, larger, reason in LESS:
            if not getattr(self, smaller) < getattr(self, larger):
                raise ValueError(self._disorder(smaller, "less than", larger, reason))
        for smaller, larger, reason in AT_MOST:
            if not getattr(self, smaller) <= getattr(self, larger):
                raise ValueError(self._disorder(smaller, "at most", larger, reason))
        return self

    def _disorder(self, smaller: str, relation: str, larger: str, reason: str) -> str:
        low, high = getattr(self, smaller), getattr(self, larger)
        return f"{smaller} ({low:g} s) must be {relation} {larger} ({high:g} s): {reason}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - part of the signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - part of the signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = TomlConfigSettingsSource(settings_cls, toml_file=config_file())
        return init_settings, env_settings, file


class Origin(StrEnum):
    """Where a setting's value came from."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


def config_file() -> Path:
    """The file settings are read from; it need not exist unless FORAGER_CONFIG names it."""
    return Path(os.environ.get("FORAGER_CONFIG") or "forager.toml")


def load_settings(**overrides: Any) -> Settings:
    """Read the settings, or say which key is wrong, where, and what was probably meant."""
    in_file = _read_config_file()
    _check_environment()
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise InvalidInput(
            _explain(error, _origins(given, in_file)),
            hint="`docs/reference/settings.md` lists every setting.",
        ) from None


def origins(flags: Collection[str] = ()) -> dict[str, Origin]:
    """Where each setting's value comes from, given the names of those set by flags."""
    return _origins(flags, _read_config_file())


def env_name(setting: str) -> str:
    return ENV_PREFIX + setting.upper()


def _origins(flags: Collection[str], in_file: Collection[str]) -> dict[str, Origin]:
    environment = {name.upper() for name, value in os.environ.items() if value}

    def origin(name: str) -> Origin:
        if name in flags:
            return Origin.FLAG
        if env_name(name) in environment:
            return Origin.ENVIRONMENT
        return Origin.FILE if name in in_file else Origin.DEFAULT

    return {name: origin(name) for name in Settings.model_fields}


def _read_config_file() -> dict[str, Any]:
    path = config_file()
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if os.environ.get("FORAGER_CONFIG"):
            raise InvalidInput(
                f"the configuration file {path} does not exist",
                hint="It is named by --config or FORAGER_CONFIG.",
            ) from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None


def _check_environment() -> None:
    known = {env_name(name) for name in Settings.model_fields} | ENV_OTHER
    for name in sorted(os.environ):
        if name.startswith(ENV_PREFIX) and name not in known:
            if name.startswith(ENV_TEST_PREFIX):
                continue
            raise InvalidInput(f"{name} is set, but is not a setting{_closest(name, known)}")


def _explain(error: ValidationError, origin: dict[str, Origin]) -> str:
    lines = []
    for problem in error.errors():
        key = str(problem["loc"][0]) if problem["loc"] else ""
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            near = _closest(key, Settings.model_fields)
            lines.append(f"unknown setting {key!r} in {config_file()}{near}")
        elif key in Settings.model_fields:
            got = "" if _is_secret(key) else f" (got {problem['input']!r})"
            lines.append(f"setting {_as_written(key, origin[key])}: {message}{got}")
        else:
            lines.append(f"settings do not fit together: {message}")
    return "\n".join(lines)


def _as_written(name: str, origin: Origin) -> str:
    """A setting's name where it was set, so that the reader knows what to change."""
    if origin is Origin.FLAG:
        return f"--{name.replace('_', '-')}"
    return env_name(name) if origin is Origin.ENVIRONMENT else f"{name!r} in {config_file()}"


def _is_secret(name: str) -> bool:
    return "SecretStr" in str(Settings.model_fields[name].annotation)


def _closest(name: str, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {match[0]}?)" if match else ""
