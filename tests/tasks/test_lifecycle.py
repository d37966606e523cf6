"""The table of moves is the only place that says how a task changes its state."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import forager
from forager.db.database import Database
from forager.tasks.lifecycle import MOVES, QUEUE, WITHDRAW, TaskMove, TaskStatus
from support.sql import fetch_row

S = TaskStatus
# the seven states of the design, and the states that may follow each of them
LEGAL = {
    S.PENDING: {S.PENDING, S.QUEUED},
    S.QUEUED: {S.CRAWLING, S.PENDING},
    S.CRAWLING: {S.DOWNLOADED, S.COMPLETED, S.FAILED, S.PENDING, S.QUEUED},
    S.DOWNLOADED: {S.PARSING},
    S.PARSING: {S.COMPLETED, S.FAILED, S.PENDING, S.DOWNLOADED},
    S.COMPLETED: {S.PENDING},
    S.FAILED: {S.PENDING},
}


def test_the_moves_make_the_state_machine_of_the_design() -> None:
    made: dict[TaskStatus, set[TaskStatus]] = {status: set() for status in TaskStatus}
    for move in MOVES:
        for before, after in move.steps.items():
            made[before].add(after)
    assert made == LEGAL


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.name)
def test_a_worker_has_a_task_only_while_it_works_on_it(move: TaskMove) -> None:
    held = {S.CRAWLING, S.PARSING}
    assert move.claims == bool(held & set(move.steps.values()))
    assert not (move.claims and held & set(move.steps))


def test_sql_of_moves() -> None:
    assert QUEUE.allowed == "t.status = 'pending'"
    assert QUEUE.changes == "status = 'queued', worker_id = NULL, updated_at = now()"
    assert WITHDRAW.allowed == "t.status IN ('queued', 'crawling', 'parsing')"
    assert "WHEN 'parsing' THEN 'downloaded'" in WITHDRAW.changes
    assert "lease = t.lease + 1" in WITHDRAW.changes


async def test_the_table_knows_the_same_states(database: Database) -> None:
    row = await fetch_row(
        database,
        """
            SELECT pg_get_constraintdef(oid) FROM pg_constraint
             WHERE conname = 'crawl_tasks_status_check'
            """,
    )
    assert set(re.findall(r"'(\w+)'", row[0])) == {status.value for status in TaskStatus}


def test_no_statement_sets_a_state_by_itself() -> None:
    update = re.compile(r"UPDATE crawl_tasks\b.*?\bSET\b(.*?)(?:\bFROM\b|\bWHERE\b|\"\"\")", re.S)
    for path in Path(forager.__file__).parent.rglob("*.py"):
        for assignments in update.findall(path.read_text("utf-8")):
            assert not re.search(
                r"(?<![\w.])status\s*=|\blease\s*=|\bworker_id\s*=", assignments
            ), (path, assignments)
