"""Failures of tasks and jobs: their causes, and the log of errors."""
