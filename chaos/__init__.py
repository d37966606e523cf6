"""Chaos: a site that knows its truth, everything that crawls it, and a monkey that breaks things.

A development tool beside the tests, not a part of the wheel: `make chaos`, or `python -m chaos`.
"""
