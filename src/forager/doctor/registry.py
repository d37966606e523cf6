"""The registry of checks: the modules that declare them, in the order of the doctor's report.

To add a check, declare it in one of these modules; CONTRIBUTING.md shows how.
"""

from __future__ import annotations

import forager.access.checks
import forager.analytics.checks
import forager.archive.checks
import forager.dispatch.checks
import forager.documents.checks
import forager.fetch.checks
import forager.index.checks
import forager.jobs.checks
import forager.parsers.checks
import forager.products.checks
import forager.render.checks
import forager.tasks.checks
import forager.webhooks.checks
from forager.checks import Check, Topic, checks_in
from forager.doctor import background, machine, server

CHECKS = checks_in(
    machine,
    forager.render.checks,
    server,
    forager.jobs.checks,
    background,
    forager.documents.checks,
    forager.tasks.checks,
    forager.fetch.checks,
    forager.dispatch.checks,
    forager.index.checks,
    forager.analytics.checks,
    forager.webhooks.checks,
    forager.parsers.checks,
    forager.products.checks,
    forager.archive.checks,
    forager.access.checks,
)


def checks_of(topic: Topic) -> list[Check[...]]:
    return [each for each in CHECKS if each.topic is topic]
