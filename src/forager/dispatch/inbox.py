"""Where Celery's tasks put what they were told: from their thread into the loop of the stages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as TookTooLong

from forager.tasks.hints import PATIENCE, Hints, HintsClosed
from forager.tasks.stages.attempt import Stage

STAGE_OF = {"crawl": Stage.DOWNLOAD, "parse": Stage.PARSE}
# the loop is asked to answer within its own patience, twice; one that does not is frozen
LIMIT = 3 * PATIENCE


class Inbox:
    def __init__(self, loop: asyncio.AbstractEventLoop, hints: Hints) -> None:
        self._loop = loop
        self._hints = hints

    def put(self, stage: str, task_ids: Sequence[int]) -> None:
        """Returns when the tasks were claimed, or cannot be; raises HintsClosed at the end."""
        offered = self._hints.of(STAGE_OF[stage]).offer(task_ids)
        try:
            asyncio.run_coroutine_threadsafe(offered, self._loop).result(LIMIT)
        except TookTooLong:
            raise HintsClosed from None
        except (CancelledError, RuntimeError):  # the loop is closed
            offered.close()
            raise HintsClosed from None
