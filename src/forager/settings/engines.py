"""Engines beside PostgreSQL, all of them off by default."""

from __future__ import annotations

from enum import StrEnum
from typing import Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator, model_validator

from forager.settings.values import Seconds
from forager.validation import matches

# the scheme is the mode of encryption
SMTP_TLS, SMTP_STARTTLS, SMTP_PLAIN = "smtps", "smtp", "smtp-plain"
# the schemes of each URL, and an example
_URLS = {
    "broker_url": (("amqp", "amqps"), "amqp://user:password@host:5672/vhost"),
    "opensearch_url": (("http", "https"), "https://user:password@host:9200"),
    "clickhouse_url": (
        ("clickhouse", "clickhouses"),
        "clickhouse://user:password@host:8123/database",
    ),
    "smtp_url": ((SMTP_TLS, SMTP_STARTTLS, SMTP_PLAIN), "smtp://user:password@host:587"),
}
# otherwise they end the host, and an error message shows the password as a wrong port or path
ESCAPED = "; in a password, write / ? # @ [ ] as %2F %3F %23 %40 %5B %5D"


class Dispatch(StrEnum):
    """How tasks that are due reach the workers."""

    POSTGRES = "postgres"
    CELERY = "celery"


class Search(StrEnum):
    """What finds sections and products by their words."""

    POSTGRES = "postgres"
    OPENSEARCH = "opensearch"
    ELASTICSEARCH = "elasticsearch"


class EngineSettings(BaseModel):
    """Settings of programs beside PostgreSQL."""

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
    broker_monitoring: bool = Field(
        default=True,
        description="Whether Celery workers answer `celery status` and `celery inspect`, and send"
        " the events that Flower shows. Needs further permissions at the broker.",
    )
    dispatch_resend_after: Seconds = Field(
        default=30.0,
        description="Seconds after which a waiting task is published to the broker again;"
        " ten times as long while messages wait there.",
    )

    # --- search ----------------------------------------------------------------------------
    search: Search = Field(
        default=Search.POSTGRES,
        description="Search backend: `postgres`, or `opensearch` or `elasticsearch` for a separate"
        " search engine.",
    )
    opensearch_url: SecretStr | None = Field(
        default=None,
        description="URL of the search engine, such as `https://user:password@host:9200`.",
    )
    opensearch_prefix: str = Field(
        default="forager",
        pattern=matches(
            "^[a-z0-9][a-z0-9_-]{0,99}$", "up to 100 lower-case letters, digits, _ and -"
        ),
        description="Prefix of index names; use a different one for each installation that shares"
        " the engine.",
    )

    embeddings: str = Field(
        default="auto",
        pattern=matches("^(auto|off|https?://.+)$", "auto, off or a URL"),
        repr=False,
        description="Embeddings for semantic search: `auto` for the model of the extra `semantic`"
        " if it is installed, `off`, or the base URL of a server with an OpenAI-compatible API,"
        " such as `http://127.0.0.1:11434/v1`.",
    )
    embeddings_model: str = Field(
        default="nomic-embed-text", description="Model to request from the embedding server."
    )
    embeddings_key: SecretStr | None = Field(
        default=None, description="API key of the embedding server."
    )

    # --- analytics -------------------------------------------------------------------------
    clickhouse_url: SecretStr | None = Field(
        default=None,
        description="ClickHouse server that `forager analytics sync` loads and that is queried"
        " instead of the files, as `clickhouse://user:password@host:8123/database`;"
        " `clickhouses://` for TLS.",
    )

    analytics_sync_every: Seconds | None = Field(
        default=None,
        description="How often a worker syncs the analytics files, such as `1h`; unset: only"
        " `forager analytics sync` does. Set it on one machine, whose home holds the files.",
    )

    # --- e-mail ----------------------------------------------------------------------------
    smtp_url: SecretStr | None = Field(
        default=None,
        description="Mail server for webhooks with a `mailto:` URL, as"
        " `smtp://user:password@host:587` (STARTTLS), `smtps://user:password@host:465` (TLS) or"
        " `smtp-plain://host:25` (no encryption).",
    )
    smtp_from: str | None = Field(
        default=None,
        pattern=matches(r"^[^@\s]+@[^@\s]+$", "an e-mail address"),
        description="Sender address of e-mail messages.",
    )

    @field_validator(*_URLS, mode="after")
    @classmethod
    def _check_url(cls, url: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if url is not None:
            schemes, example = _URLS[info.field_name or ""]
            text = url.get_secret_value()
            # several brokers may stand in for each other
            given = text.split(";") if info.field_name == "broker_url" else [text]
            if not all(_is_address(each, schemes) for each in given):
                raise ValueError(f"expected {example}{ESCAPED}")
        return url

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.smtp_url is not None and self.smtp_from is None:
            raise ValueError("smtp_url is set, but smtp_from is not")
        if self.dispatch is Dispatch.CELERY and self.broker_url is None:
            raise ValueError("dispatch is celery, but broker_url is not set")
        if self.search is not Search.POSTGRES and self.opensearch_url is None:
            raise ValueError(f"search is {self.search}, but opensearch_url is not set")
        return self


def _is_address(text: str, schemes: tuple[str, ...]) -> bool:
    """Whether host and port are what they seem to be. What is wrong with them may be a secret."""
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    behind = f"{parts.path}{parts.query}{parts.fragment}"
    # urlsplit lowers the scheme, which the clients do not
    has_scheme = text.startswith(tuple(f"{scheme}://" for scheme in schemes))
    return has_scheme and has_host and "@" not in behind
