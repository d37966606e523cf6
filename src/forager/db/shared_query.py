"""One query for concurrent lookups of single rows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


class SharedQuery(Generic[Key, Found]):
    """Collects the keys of concurrent lookups, and sends one query for all of them.

    Only one query is under way, so that the busier the crawl, the more visits share the next one.
    """

    def __init__(self, ask: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Found]]]) -> None:
        self._ask = ask
        self._asked: dict[Key, asyncio.Future[Found | None]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def find(self, key: Key) -> Found | None:
        """The row of a key; keys that are asked for together share one statement."""
        answer = self._asked.get(key)
        if answer is None:
            answer = self._asked[key] = asyncio.get_running_loop().create_future()
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._answer_all())
        return await asyncio.shield(answer)

    async def _answer_all(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, {}
            await self._answer(asked)

    async def _answer(self, asked: dict[Key, asyncio.Future[Found | None]]) -> None:
        try:
            found = await self._ask(list(asked))
        except Exception as error:
            for answer in asked.values():
                answer.set_exception(error)
                answer.exception()  # read, even if its visit is gone by now
            return
        for key, answer in asked.items():
            answer.set_result(found.get(key))
