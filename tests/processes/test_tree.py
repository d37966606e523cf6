"""The memory of a process tree."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil

from forager.processes.tree import resident_mb

# a process in a thread of a process: Linux lists children by the thread that started them
PARENT = """
import subprocess, sys, threading
def start():
    global child
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
thread = threading.Thread(target=start)
thread.start()
thread.join()
child.stdout.readline()
print("ready", flush=True)
sys.stdin.read()
child.kill()
"""
CHILD = (
    "import sys; kept = bytearray(b'x') * (200 << 20); print('ready', flush=True); sys.stdin.read()"
)


def test_memory_of_a_process_includes_its_children() -> None:
    command = [sys.executable, "-c", PARENT, CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        own = psutil.Process(parent.pid).memory_info().rss / 2**20
        assert resident_mb(parent.pid) > own + 190
        parent.communicate()


def test_memory_of_a_process_that_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert resident_mb(process.pid) == 0.0
    assert resident_mb(os.getpid()) > 0
