"""Proxies: pool, rotation, probes, usage and cost."""
