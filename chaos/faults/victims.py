"""Victims: processes of the cluster by role."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from uuid import UUID

import psutil

from chaos.cluster import Cluster
from forager.processes.started import MARK_VARIABLE

RUNNER = "forager.jobs"
TASK_WORKER = "forager.tasks"
READER = "forager.crawl.extraction.process"


@dataclass(frozen=True, slots=True)
class Victim:
    """A process, and the jobs that end with it."""

    process: psutil.Process
    role: str
    jobs: frozenset[UUID]


def supervisors(cluster: Cluster) -> list[Victim]:
    found = []
    for member in cluster.members:
        if member.pid is not None and member.slot.startswith("worker"):
            jobs = frozenset[UUID]().union(*(_jobs(p) for p in cluster.descendants(member)))
            with contextlib.suppress(psutil.Error):
                found.append(Victim(psutil.Process(member.pid), "supervisor", jobs))
    return found


def services(cluster: Cluster, slot: str) -> list[Victim]:
    """The API, or the scheduler."""
    found = []
    for member in cluster.members:
        if member.pid is not None and member.slot == slot:
            with contextlib.suppress(psutil.Error):
                found.append(Victim(psutil.Process(member.pid), slot, frozenset()))
    return found


def runners(cluster: Cluster) -> list[Victim]:
    return _descendants(cluster, RUNNER, "runner")


def task_workers(cluster: Cluster) -> list[Victim]:
    return _descendants(cluster, TASK_WORKER, "task worker")


def extractors(cluster: Cluster) -> list[Victim]:
    return _descendants(cluster, READER, "extraction process")


def _descendants(cluster: Cluster, module: str, role: str) -> list[Victim]:
    found = []
    for member in cluster.members:
        for process in cluster.descendants(member):
            with contextlib.suppress(psutil.Error):
                if process.cmdline()[1:3] == ["-m", module]:
                    found.append(Victim(process, role, _jobs(process)))
    return found


def _jobs(process: psutil.Process) -> frozenset[UUID]:
    with contextlib.suppress(psutil.Error, OSError):
        mark = process.environ().get(MARK_VARIABLE, "").split()
        return frozenset({UUID(mark[1])} if len(mark) == 3 else ())
    return frozenset()
