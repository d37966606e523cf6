"""A shop whose visits end as a test says."""

from __future__ import annotations

from collections.abc import Sequence

from forager.db.ids import new_id
from forager.errors import ErrorKind
from forager.failures.cause import Cause
from forager.parsers.pattern import GENERIC_VERSION
from forager.settings import Settings
from forager.tasks.alarms import ReadName, hold_same_pages
from forager.tasks.stages.attempt import Attempt, LeasedTask, Stage, StageOfWorker, TaskOutcome
from forager.tasks.stages.settle import settle
from products.product_shop import Shop, lamp
from tasks.working import Tasks

PARSER = StageOfWorker(new_id(), Stage.PARSE)
WORKER = StageOfWorker(new_id(), Stage.DOWNLOAD)


class VisitedShop:
    """Known products of one shop, and visits of them that end as a test says."""

    def __init__(self, tasks: Tasks) -> None:
        quick = {
            "dead_letter_visits": 3, "dead_letter_after": 86400.0,
            "gone_visits": 2, "gone_after": 3600.0,
        }  # fmt: skip
        self.tasks = tasks
        self.settings = Settings(**(tasks.settings.model_dump() | quick))
        self.shop = Shop(tasks.database, self.settings)

    async def open(self, count: int) -> list[int]:
        await self.shop.open()
        await self.shop.stock({f"p{n}": lamp(str(10 + n)) for n in range(count)})
        ids = [await self.shop.task(f"p{n}") for n in range(count)]
        version = f"generic {GENERIC_VERSION}"
        await self.tasks.sql("UPDATE crawl_tasks SET parser_version = %s", version)
        return ids

    async def visit(
        self,
        ids: Sequence[int],
        status: int | None = 404,
        kind: ErrorKind = ErrorKind.HTTP_CLIENT,
        *,
        outcome: TaskOutcome = TaskOutcome.FAILED,
        permanent: bool = False,
    ) -> list[TaskOutcome]:
        """Visits without retries that ended like this, in one commit."""
        await self.tasks.sql(
            "UPDATE crawl_tasks SET status = 'crawling', worker_id = %s WHERE id = ANY(%s)",
            WORKER.worker_id,
            list(ids),
        )
        ok = status == 200
        attempts = [
            Attempt(
                task=await self.held(id_),
                outcome=TaskOutcome.OK if ok
                else TaskOutcome.WITHHELD if kind is ErrorKind.BLOCKED else outcome,
                cause=None if ok else Cause(kind, f"answered {status}", permanent),
                http_status=status,
            )
            for id_ in ids
        ]  # fmt: skip
        async with self.tasks.database.transaction() as connection:
            settled = await settle(connection, WORKER, attempts, self.settings)
        return [attempt.outcome for attempt in settled]

    async def read(self, names: Sequence[ReadName]) -> list[TaskOutcome]:
        """Visits that found these names, in one commit; returns how the doubted ones ended."""
        await self.tasks.sql(
            "UPDATE crawl_tasks SET status = 'parsing', worker_id = %s WHERE id = ANY(%s)",
            PARSER.worker_id,
            [each.task.id for each in names],
        )
        async with self.tasks.database.transaction() as connection:
            doubts = await hold_same_pages(connection, names, self.settings)
            attempts = [
                Attempt(
                    task=each.task, outcome=doubts[each.task.id][0], cause=doubts[each.task.id][1]
                )
                for each in names
                if each.task.id in doubts
            ]
            settled = await settle(connection, PARSER, attempts, self.settings)
        return [attempt.outcome for attempt in settled]

    async def held(self, task_id: int) -> LeasedTask:
        rows = await self.tasks.sql(
            "SELECT lease, domain_id, url, url_hash, parser_version FROM crawl_tasks WHERE id = %s",
            task_id,
        )
        lease, domain_id, url, url_hash, version = rows[0]
        return LeasedTask(
            id=task_id, lease=lease, domain_id=domain_id, url=url, url_hash=url_hash,
            retry_count=0, max_retries=0, etag=None, last_modified=None, parser_version=version,
            segment=None, segment_offset=None, segment_length=None, domain_name=self.shop.host,
            use_proxies=None, allow_private=True,
        )  # fmt: skip

    async def later(self, hours: float) -> None:
        """As if time had passed since everything that happened."""
        await self.tasks.sql(
            "UPDATE crawl_tasks SET failing_since = failing_since - %s * interval '1 hour'", hours
        )
        await self.tasks.sql(
            "UPDATE task_attempts SET finished_at = finished_at - %s * interval '1 hour'", hours
        )

    async def state(self, task_id: int) -> tuple[object, ...]:
        rows = await self.tasks.sql(
            "SELECT status, failed_visits, error_kind, scheduled_at > now() + interval '20 hours'"
            " FROM crawl_tasks WHERE id = %s",
            task_id,
        )
        return tuple(rows[0])

    async def availability(self, task_id: int) -> str:
        return str((await self.tasks.product(task_id))[3])

    async def events(self) -> list[str]:
        rows = await self.tasks.sql("SELECT kind FROM catalog_events ORDER BY id")
        return [row[0] for row in rows if not row[0].startswith("product.added")]
