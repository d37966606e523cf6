"""Tasks, parsers, images, and how long what they leave is kept."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, SecretStr

from forager.settings.values import DAY, Names, Seconds, SecondsOrZero, length_or_off
from forager.validation import matches


class ProductSettings(BaseModel):
    """Settings of tasks and products."""

    recrawl_every: Seconds = Field(
        default=86400.0,
        description="Recrawl interval of tasks for which neither the task nor its domain sets one.",
    )
    revisit_changed: bool = Field(
        default=True,
        description="Visit a product whose price changed again after a quarter of its interval, at"
        " least an hour, and other offers with its GTIN soon; adaptive scheduling has its own"
        " interval.",
    )
    revisit_withheld: SecondsOrZero = Field(
        default=300.0,
        description="Visit a page again this long after its price was withheld, within its host's"
        " budget; 0: at the next regular visit.",
    )
    adaptive_schedule: bool = Field(
        default=False,
        description="Visit products more often if their prices change, and less often if not,"
        " unless the domain has another setting.",
    )
    adaptive_min: Seconds = Field(
        default=3600.0, description="Shortest interval of adaptive scheduling."
    )
    adaptive_max: Seconds = Field(
        default=30 * 86400.0, description="Longest interval of adaptive scheduling."
    )
    scheduler_interval: Seconds = Field(
        default=1.0,
        description="How often the scheduler looks for tasks that are due; after a minute without"
        " any, at most every 3 seconds.",
    )
    task_concurrency: int = Field(
        default=32,
        ge=1,
        le=10_000,
        description="Pages of tasks that one worker downloads at the same time. Images and rendered"
        " pages add up to 16 requests.",
    )
    task_stages: Literal["both", "download", "parse"] = Field(
        default="both", description="Stages of tasks that a worker runs: both, download or parse."
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
    dead_letter_visits: int = Field(
        default=5,
        ge=1,
        le=1000,
        description="Failed visits in a row before a task becomes a dead letter.",
    )
    dead_letter_after: SecondsOrZero = Field(
        default=3 * DAY,
        description="Time a task must have been failing before it becomes a dead letter.",
    )
    replacement_visits: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="Visits in a row that show the same other product before it may be accepted.",
    )
    replacement_accepted: bool = Field(
        default=False,
        description="Accept another product at a known URL after `replacement_visits`;"
        " otherwise a user accepts it.",
    )
    gone_visits: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="Visits in a row answered with 404 or 410 before a product is discontinued.",
    )
    gone_after: SecondsOrZero = Field(
        default=DAY,
        description="Time a page must have been gone before its product is discontinued.",
    )
    task_proxies: bool = Field(
        default=False,
        description="Fetch tasks through the proxy pool, unless their domain has another setting.",
    )
    parser_modules: Names = Field(
        default=(), description="Python modules, separated by commas, that register custom parsers."
    )
    parser_alert_pages: int = Field(
        default=100,
        ge=10,
        le=10_000,
        description="Newest pages of a domain that are compared with its other pages of the last"
        " seven days to detect a falling success rate of parsers.",
    )
    parser_alert_share: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="Share of the usual success rate below which a `parser.degraded` event is"
        " sent.",
    )
    parser_alert_interval: Seconds = Field(
        default=3600.0,
        description="Shortest time between two `parser.degraded` events of one domain.",
    )
    parser_bypass_after: int = Field(
        default=5,
        ge=1,
        le=1000,
        description="Failed pages in a row after which a worker bypasses a parser.",
    )
    parser_time_limit: Seconds = Field(
        default=3.0, description="Processor time of a site parser for one page."
    )
    product_model: str = Field(
        default="off",
        pattern=matches("^(off|https?://.+)$", "off or a URL"),
        repr=False,
        description="Language model for fields that rules miss: `off`, or the base URL of a server"
        " with an OpenAI-compatible API, such as `http://127.0.0.1:11434/v1`. It is asked for pages"
        " of products without a price or a name.",
    )
    product_model_name: str = Field(
        default="llama3.2", description="Model to request from the server of `product_model`."
    )
    product_model_key: SecretStr | None = Field(
        default=None, description="API key of the server of `product_model`."
    )
    product_model_daily_tokens: int = Field(
        default=1_000_000,
        ge=0,
        le=10**12,
        description="Tokens per day that all workers may use of `product_model`.",
    )
    product_model_cost: float = Field(
        default=0.0,
        ge=0,
        description="Cost of a million tokens of `product_model`, to report the cost of a day.",
    )
    parser_bypass_time: Seconds = Field(
        default=900.0,
        description="How long a failing parser is bypassed; doubles each time, up to six hours.",
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
        description="Attempts, errors, extractions and events of tasks, and traffic counts of"
        " proxies, are deleted after this many days.",
    )
    product_archive_after: Annotated[float | None, BeforeValidator(length_or_off)] = Field(
        default=None,
        ge=DAY,
        le=36500 * DAY,
        description="Products that were not seen for this long and are no longer tracked or"
        " found are exported to files next to the archive and deleted; as `180d`, or `off`.",
    )
