"""The supervisor of background services: runs each one, and restarts it with backoff if it fails.

No error of a step ends its service or affects the others. An unavailable database is retried at
the service's own pace; everything else backs off exponentially. A failure is logged when it
begins, once per minute while it lasts, and when the service has recovered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from weakref import WeakSet

from forager.backoff import backoff
from forager.errors import ForagerError
from forager.logs import get_logger
from forager.services.loop_watch import LoopWatchdog, stop_watching, watch_this_loop
from forager.services.service import SKIPPED, UNAVAILABLE, Service, reason_of
from forager.services.status import ServiceState, ServiceStatus

log = get_logger("services")

FIRST_DELAY = 1.0
LONGEST_DELAY = 60.0
LOG_EVERY = 60.0
# skipped items that a status names
MAX_SKIPPED = 20


class SupervisedService:
    """One service and its status."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.status = ServiceStatus(name=service.name, every=service.every)
        self._failing_since = 0.0
        self._logged_at = 0.0

    async def run(self) -> None:
        """Run for ever. Only cancellation ends it."""
        await self._wait(self.service.first_pause(), ServiceState.WAITING)
        while True:
            try:
                resources = self.service.resources
                async with nullcontext() if resources is None else resources():
                    await self._repeat()
            except asyncio.CancelledError as error:
                if _is_cancelled():
                    raise
                await self._back_off(error)  # a step let the cancellation of another task through
            except Exception as error:
                await self._back_off(error)

    async def _repeat(self) -> None:
        while True:
            self.status = replace(self.status, state=ServiceState.RUNNING, last_run=_now())
            skipped: list[str] = []
            SKIPPED.set(skipped)
            try:
                with self._step_limit():
                    handled = await self.service.step()
            except UNAVAILABLE as error:
                await self._back_off(error)
            else:
                self._succeeded(skipped)
                await self._wait(self.service.pause(handled), ServiceState.WAITING)

    async def _back_off(self, error: BaseException) -> None:
        failures = self.status.failures + 1
        self.status = replace(
            self.status,
            failures=failures,
            is_fault=not isinstance(error, (ForagerError, *UNAVAILABLE)),
            last_error=reason_of(error),
            last_error_at=_now(),
        )
        self._log_failure(error)
        longest = max(LONGEST_DELAY, self.service.every)
        if isinstance(error, UNAVAILABLE):
            longest = max(FIRST_DELAY, self.service.every)
        await self._wait(backoff(failures, FIRST_DELAY, longest), ServiceState.BACKING_OFF)

    @contextmanager
    def _step_limit(self) -> Iterator[None]:
        """Report the service as stuck if the block runs for too long."""
        limit = asyncio.get_running_loop().call_later(self.service.step_limit, self._report_stuck)
        try:
            yield
        finally:
            limit.cancel()
            if self.status.is_stuck:
                log.info("service recovered", service=self.service.name)
                self.status = replace(self.status, state=ServiceState.RUNNING)

    def _report_stuck(self) -> None:
        seconds = round(self.service.step_limit)
        log.error("service is stuck", service=self.service.name, seconds=seconds)
        self.status = replace(self.status, state=ServiceState.STUCK)

    def _succeeded(self, skipped: list[str]) -> None:
        if self.status.failures:
            seconds = round(time.monotonic() - self._failing_since, 1)
            log.info("service recovered", service=self.service.name, seconds=seconds)
        for item in set(skipped).difference(self.status.skipped):
            log.error("item skipped", service=self.service.name, item=item)
        self.status = replace(
            self.status,
            failures=0,
            is_fault=False,
            last_success=_now(),
            skipped=tuple(skipped[:MAX_SKIPPED]),
        )

    def _log_failure(self, error: BaseException) -> None:
        now = time.monotonic()
        if self.status.failures == 1:
            self._failing_since = now
        elif now - self._logged_at < LOG_EVERY:
            return
        self._logged_at = now
        write, trace = (log.error, error) if self.status.is_fault else (log.warning, None)
        write(
            "service failed, will be restarted",
            service=self.service.name,
            reason=reason_of(error),
            failures=self.status.failures,
            exc_info=trace,
        )

    async def _wait(self, seconds: float, state: ServiceState) -> None:
        next_run = _now() + timedelta(seconds=seconds)
        self.status = replace(self.status, state=state, next_run=next_run)
        await asyncio.sleep(seconds)


class ServiceSupervisor:
    """Services that run together. The first ones of a process also report its event loop."""

    def __init__(self, services: Iterable[Service]) -> None:
        self._supervised = [SupervisedService(service) for service in services]
        self._watchdog: LoopWatchdog | None = None

    @property
    def statuses(self) -> list[ServiceStatus]:
        """The state of each service."""
        watched = [] if self._watchdog is None else [self._watchdog.status]
        return [*(each.status for each in self._supervised), *watched]

    async def run(self) -> None:
        """Run all of them until cancelled."""
        running = [
            asyncio.create_task(each.run(), name=each.service.name) for each in self._supervised
        ]
        _RUNNING.add(self)
        self._watchdog = watch_this_loop()
        try:
            await asyncio.gather(*running)
        finally:
            if self._watchdog is not None:
                stop_watching(self._watchdog)
            _RUNNING.discard(self)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


_RUNNING: WeakSet[ServiceSupervisor] = WeakSet()


def statuses_of_this_process() -> Sequence[ServiceStatus]:
    """The state of all services of this process."""
    return [status for supervisor in _RUNNING for status in supervisor.statuses]


@asynccontextmanager
async def running(services: Iterable[Service]) -> AsyncIterator[ServiceSupervisor]:
    """Run services for as long as the block runs."""
    supervisor = ServiceSupervisor(services)
    task = asyncio.create_task(supervisor.run(), name="services")
    try:
        yield supervisor
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _now() -> datetime:
    return datetime.now(UTC)
