"""Limits count what a request causes, and not what others do to its process."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forager.processes import usage as effort
from forager.processes.usage import WALL_CLOCK_FACTOR, RequestUsage, Usage

RUNNING = Usage(cpu_seconds=0.0, memory_mb=1.0, is_asleep=False, is_stopped=False)
SECONDS = 20.0


class Machine:
    """One process, looked at once a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.usage: Usage | None = RUNNING
        monkeypatch.setattr("forager.processes.usage.time.monotonic", lambda: self.now)
        monkeypatch.setattr(effort, "read_usage", lambda _: self.usage)
        self.effort = RequestUsage()
        self.effort.add(1, 7, 1.0)

    def pass_time(self, seconds: int, *, cpu: float = 0.0, step: float = 1.0) -> None:
        for _ in range(seconds):
            self.now += step
            if self.usage is not None:
                self.usage = replace(self.usage, cpu_seconds=self.usage.cpu_seconds + cpu)
            self.effort.add(1, 7, 1.0)

    @property
    def broken(self) -> str | None:
        return self.effort.broken_limit(SECONDS)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_processor_time_counts(machine: Machine) -> None:
    machine.pass_time(20, cpu=1.0)
    assert machine.broken is None
    machine.pass_time(1, cpu=1.0)
    assert machine.broken == "it takes longer than 20 s"


def test_time_asleep_counts(machine: Machine) -> None:
    machine.usage = replace(RUNNING, is_asleep=True)
    machine.pass_time(21)
    assert machine.broken == "it takes longer than 20 s"


def test_an_overloaded_machine_counts_only_against_a_far_larger_limit(machine: Machine) -> None:
    machine.pass_time(20 * WALL_CLOCK_FACTOR, cpu=0.01)
    assert machine.broken is None
    machine.pass_time(1)
    assert machine.broken == "it takes longer than 600 s on this machine"


def test_a_process_that_cannot_be_looked_at_has_the_larger_limit(machine: Machine) -> None:
    machine.usage = None
    machine.pass_time(20 * WALL_CLOCK_FACTOR + 1)
    assert machine.broken is not None


def test_the_sleep_of_a_machine_does_not_count(machine: Machine) -> None:
    machine.usage = replace(RUNNING, is_asleep=True)
    machine.pass_time(2, step=3600.0)
    assert machine.broken is None


def test_a_stopped_process_costs_its_request_nothing(machine: Machine) -> None:
    machine.usage = replace(RUNNING, is_stopped=True)
    machine.pass_time(30)
    assert machine.broken is None
    assert machine.effort.is_stopped_too_long
    machine.usage = RUNNING
    machine.pass_time(1)
    assert not machine.effort.is_stopped_too_long


def test_every_request_starts_from_zero(machine: Machine) -> None:
    machine.pass_time(20, cpu=1.0)
    machine.effort.add(1, 8, 1.0)
    machine.now += 1
    machine.effort.add(1, 8, 1.0)
    assert machine.broken is None
