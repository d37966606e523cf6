"""Processes with a time and a memory limit, for work on input that nobody trusts."""
