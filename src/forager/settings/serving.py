"""The API, the dashboard, and what operators watch."""

from __future__ import annotations

from pydantic import BaseModel, Field

from forager.settings.values import Names


class ServingSettings(BaseModel):
    api_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address the API listens on; without a key it can only be a loopback one.",
    )
    api_port: int = Field(default=8700, ge=0, le=65535, description="Port the API listens on.")
    api_allowed_hosts: Names = Field(
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
    api_max_connections: int = Field(
        default=2000,
        ge=10,
        le=60_000,
        description="Client connections one API process keeps open. At the limit, the one that has"
        " waited longest without sending a request is closed.",
    )
    api_max_requests: int = Field(
        default=500,
        ge=10,
        le=60_000,
        description="Requests one API process works on at a time; more are answered with 503.",
    )
    api_connections: int = Field(
        default=16, ge=2, le=1000, description="Database connections one API process may open."
    )

    # --- operating -------------------------------------------------------------------------
    metrics_open: bool = Field(
        default=False,
        description="Serve `/metrics` without a key; otherwise it needs one, like the API does.",
    )
    traces_url: str | None = Field(
        default=None,
        repr=False,
        pattern="^https?://",
        description="Where OpenTelemetry traces are sent (OTLP over HTTP), as"
        " `http://127.0.0.1:4318`; by default to OTEL_EXPORTER_OTLP_ENDPOINT, if that is set.",
    )
