"""SQL conditions: which domains `d` a worker may serve, by its region and proxies."""

from __future__ import annotations

from typing import LiteralString

# Work bound to a region goes to workers of that region; workers without one get unbound work.
IN_REGION: LiteralString = "(d.region IS NULL OR d.region = %(region)s)"

# Proxied work goes to workers with a usable proxy, unless no proxy is active anywhere: waiting
# would then be pointless. The subqueries refer to no row, so PostgreSQL runs them once.
HAS_PROXY: LiteralString = """
    (NOT coalesce(d.use_proxies, %(task_proxies)s)
     OR EXISTS (SELECT FROM proxies
                 WHERE is_active AND (region IS NULL OR region = %(region)s))
     OR NOT EXISTS (SELECT FROM proxies WHERE is_active))
"""
