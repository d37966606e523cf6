"""The job queue: lifecycle, claims, heartbeats, supervisor, runner and watchdog.

It knows nothing of crawling: a job is a kind, a payload and a handler.
"""
