"""Who is a process of this machine, and whether it has died."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from forager.processes.identity import has_died, process_name

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes are identified on Linux only"
)


def test_a_living_process_has_not_died() -> None:
    name = process_name()
    assert name is not None
    assert not has_died(name)


def test_a_process_that_ended_has_died_even_if_its_number_is_used_again() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        name = process_name(child.pid)
        assert name is not None
        assert not has_died(name)
    assert has_died(name)
    *others, _ = process_name().split(" ")  # type: ignore[union-attr] # it lives
    assert has_died(" ".join([*others, "1"])), "the same number, but it started at another time"


def test_of_another_machine_nothing_is_known() -> None:
    assert not has_died(f"another-boot/pid:[1] {2**22} 1")
    assert not has_died("nonsense")
    assert process_name(2**22 + os.getpid()) is None
