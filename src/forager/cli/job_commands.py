"""All of `forager jobs`: the commands that look, and those that move."""

from __future__ import annotations

from forager.cli import job_pages, moves
from forager.cli.jobs import app

moves.add_to(app)
job_pages.add_to(app)

__all__ = ["app"]
