"""SQL of what a crawl does between its commits."""

from __future__ import annotations

from forager.db.database import Connection
from forager.jobs.lease import Lease


async def update_activity(
    connection: Connection, lease: Lease, *, reason: str | None, seconds: float | None, pace: float
) -> None:
    """Write what the crawl waits for; nothing if the lease belongs to another worker."""
    await connection.execute(
        """
        UPDATE crawl_states s
           SET waits_for = %(reason)s,
               waits_until = now() + %(seconds)s * interval '1 second',
               pace = %(pace)s,
               reported_at = now()
          FROM crawl_jobs j
         WHERE s.job_id = %(job_id)s AND j.id = s.job_id AND j.lease = %(lease)s
        """,
        {
            "job_id": lease.job_id,
            "lease": lease.number,
            "reason": reason,
            "seconds": seconds,
            "pace": pace,
        },
    )
