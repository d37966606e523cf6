"""SQL of the use of the model for products: tokens by day."""

from __future__ import annotations

from dataclasses import dataclass

from forager.db.database import Connection
from forager.db.rows import Rows, Values


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The use of a language model on one day."""

    requests: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


async def reserve_tokens(connection: Connection, tokens: int, *, limit: int) -> bool:
    """Reserve tokens of today; False if they would exceed the limit."""
    return await Values(connection).changed(
        """
        INSERT INTO model_usage AS u (day, reserved_tokens)
        SELECT (now() AT TIME ZONE 'UTC')::date, %(tokens)s WHERE %(tokens)s <= %(limit)s
            ON CONFLICT (day) DO UPDATE
           SET reserved_tokens = u.reserved_tokens + %(tokens)s
         WHERE u.reserved_tokens + u.prompt_tokens + u.completion_tokens + %(tokens)s <= %(limit)s
        """,
        {"tokens": tokens, "limit": limit},
    )


async def count_usage(connection: Connection, usage: ModelUsage, *, reserved: int) -> None:
    """Count a request, and return what was reserved for it."""
    await connection.execute(
        """
        INSERT INTO model_usage AS u (day, requests, failures, prompt_tokens, completion_tokens)
        VALUES ((now() AT TIME ZONE 'UTC')::date, %(requests)s, %(failures)s, %(prompt)s,
                %(completion)s)
            ON CONFLICT (day) DO UPDATE
           SET requests = u.requests + excluded.requests,
               failures = u.failures + excluded.failures,
               prompt_tokens = u.prompt_tokens + excluded.prompt_tokens,
               completion_tokens = u.completion_tokens + excluded.completion_tokens,
               reserved_tokens = greatest(u.reserved_tokens - %(reserved)s, 0)
        """,
        {
            "requests": usage.requests,
            "failures": usage.failures,
            "prompt": usage.prompt_tokens,
            "completion": usage.completion_tokens,
            "reserved": reserved,
        },
    )


async def select_usage(connection: Connection) -> ModelUsage:
    """The use of today."""
    found = await Rows(connection, ModelUsage).first(
        """
        SELECT requests, failures, prompt_tokens, completion_tokens
          FROM model_usage WHERE day = (now() AT TIME ZONE 'UTC')::date
        """
    )
    return found or ModelUsage()
