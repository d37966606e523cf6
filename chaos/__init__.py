"""Chaos tests: inject faults into a running cluster and check that every promise is kept.

A development tool that is not part of the wheel. Run `make chaos` or `python -m chaos`.
"""
