"""Settings of workers, of the API and of the dashboard."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, Field, SecretStr, model_validator

from forager.settings.values import A_YEAR, Names, Seconds, SecondsOrZero
from forager.validation import matches


class WorkerSettings(BaseModel):
    """Settings of workers."""

    worker_capacity: int = Field(
        default=1_000, ge=1, le=10_000, description="Jobs one worker runs at the same time."
    )
    worker_runners: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Processes in which a worker runs jobs that share a process; by default one"
        " for every four cores.",
    )
    worker_own_runners: int = Field(
        default=4,
        ge=1,
        le=1000,
        description="Jobs that one worker runs at the same time in their own process: custom"
        " job kinds, and jobs that were in runners that died.",
    )
    region: str | None = Field(
        default=None,
        pattern=matches("^[a-z0-9-]{1,32}$", "up to 32 lower-case letters, digits and dashes"),
        description="Region of this worker: it also serves domains and uses proxies that are"
        " assigned to this region.",
    )
    poll_interval: Seconds = Field(
        default=1.0, description="How often a worker looks for jobs when nothing wakes it."
    )
    heartbeat_interval: Seconds = Field(
        default=10.0, description="How often a worker renews the leases of its jobs."
    )
    lease_limit: Seconds = Field(
        default=90.0,
        description="A job whose lease was not renewed for this long is stopped by its runner.",
    )
    stall_limit: float = Field(
        default=60.0,
        gt=1,  # a sign of life comes once per second
        le=A_YEAR,
        allow_inf_nan=False,
        description="A runner or task worker that does not respond for this long is killed.",
    )
    progress_limit: Seconds = Field(
        default=900.0,
        description="A job or task worker that commits nothing for this long is stopped.",
    )
    job_modules: Names = Field(
        default=(),
        description="Python modules, separated by commas, that register custom job kinds.",
    )
    job_time_limit: Seconds | None = Field(
        default=None,
        description="Longest time one run of a job, or one task, may take; none by default.",
    )
    job_memory_limit_mb: int = Field(
        default=2048,
        ge=64,
        description="Memory a runner or task worker and its children may use together.",
    )
    shutdown_grace: SecondsOrZero = Field(
        default=20.0,
        description="Time in which a process exits after a stop signal, at least 2 s; then it is "
        "killed. Its children have all of it but a quarter, at most 5 s, to commit and exit.",
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


class ServingSettings(BaseModel):
    """Settings of the API and the dashboard."""

    api_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address the API listens on; without an API key only a loopback address is"
        " allowed.",
    )
    api_port: int = Field(default=8700, ge=0, le=65535, description="Port the API listens on.")
    api_allowed_hosts: Names = Field(
        default=(),
        description="Host names, separated by commas, that the API accepts in addition to those"
        " of this machine; `*` for any.",
    )
    api_max_body_mb: float = Field(
        default=10.0, gt=0, le=1000, description="Largest request that the API reads."
    )
    api_requests_per_minute: int | None = Field(
        default=60_000,
        ge=1,
        description="Requests per minute of one owner, over all API processes, unless the owner"
        " has a quota.",
    )
    api_max_connections: int = Field(
        default=2000,
        ge=10,
        le=60_000,
        description="Client connections that one API process keeps open. At the limit, the"
        " connection that has been idle longest is closed.",
    )
    api_max_requests: int = Field(
        default=500,
        ge=10,
        le=60_000,
        description="Requests that one API process handles at the same time; further requests are"
        " answered with 503.",
    )
    api_connections: int = Field(
        default=16, ge=2, le=1000, description="Database connections one API process may open."
    )

    public_url: str | None = Field(
        default=None,
        pattern=matches("^https?://[^/?#]+/?$", "a URL without a path"),
        description="URL by which people and clients reach the API and the dashboard, if a proxy"
        " stands before it, as `https://forager.example.com`.",
    )

    # --- tokens of an issuer ---------------------------------------------------------------
    oidc_issuer: str | None = Field(
        default=None,
        pattern=matches(
            r"^(https://|http://(localhost|127\.0\.0\.1)(:|/|$))[^?#]*$",
            "a URL that begins with https://",
        ),
        description="OpenID Connect issuer whose bearer tokens the API, `/mcp` and the dashboard"
        " accept, as `https://login.example.com/realms/docs`. API keys keep working.",
    )
    oidc_audience: str | None = Field(
        default=None, min_length=1, description="Audience that a token must be for."
    )
    oidc_owner_claim: str = Field(
        default="sub",
        min_length=1,
        description="Claim with the name of the owner, such as `sub` or `email`.",
    )
    oidc_scope_claim: str = Field(
        default="scope",
        min_length=1,
        description="Claim that lists scopes: `forager:read`, `forager:operate`, `forager:admin`.",
    )
    oidc_client_id: str | None = Field(
        default=None, min_length=1, description="Client with which people sign in to the dashboard."
    )
    oidc_client_secret: SecretStr | None = Field(
        default=None, description="Secret of that client, if it has one."
    )

    @model_validator(mode="after")
    def _names_the_audience(self) -> Self:
        """A token for another service of the issuer must not be accepted here."""
        if self.oidc_issuer is not None and self.oidc_audience is None:
            raise ValueError("oidc_issuer is set, but oidc_audience is not")
        return self

    # --- operating -------------------------------------------------------------------------
    metrics_open: bool = Field(
        default=False,
        description="Serve `/metrics` without a key; otherwise it needs one, like the API does.",
    )
    traces_url: str | None = Field(
        default=None,
        repr=False,
        pattern=matches("^https?://", "a URL that begins with http:// or https://"),
        description="Where OpenTelemetry traces are sent (OTLP over HTTP), as"
        " `http://127.0.0.1:4318`; by default to OTEL_EXPORTER_OTLP_ENDPOINT, if that is set.",
    )
