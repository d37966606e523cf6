"""Fetches images at the pace of their hosts, checks them, and stores each content once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from forager.archive.storage import size_of
from forager.archive.warc_record import ArchiveError
from forager.backoff import backoff, jittered
from forager.clock import local_time
from forager.db.database import Connection, Database
from forager.db.outages import TRANSIENT_ERRORS, Outage
from forager.errors import DiskFull, ErrorKind, GiveUp, WorkFailed
from forager.extract.hosts import host_of, parent_domains
from forager.extract.text import storable
from forager.fetch.budgets.slots import DomainInactive, HostThrottled
from forager.fetch.polite import DomainTerms, Fetching
from forager.fetch.response import Request, ResponseLimits
from forager.images.files import image_path, open_image_files
from forager.images.store import images as store
from forager.images.store.images import START, KnownFile, NewFile, PendingImage
from forager.logs import get_logger
from forager.processes.pool import SandboxPool
from forager.processes.sandbox import SandboxLimits
from forager.settings import Settings

log = get_logger("images")

INTERVAL = 5.0
PER_CLAIM = 64
AT_ONCE = 8
PER_HOST = 4
LEASE = 600.0
# the length of the turn of a host, after which the next one is served
HOST_TURN = 30.0
# a file that was fetched from a URL within this time is reused
REUSED_FOR = 86400.0
MAX_ATTEMPTS = 5
FIRST_WAIT = 60.0
LONGEST_WAIT = 6 * 3600.0
SWITCHED_OFF_WAIT = 3600.0
STORAGE_WAIT = 300.0
MIN_DELAY = 1.0
# how long images wait while pages of their host are due
PAGES_FIRST = 5.0
# an image that has waited for longer is fetched before pages, one per turn of its host
LONGEST_BEHIND_PAGES = 900.0
MAX_PROBLEM = 500
# errors for which an image counts as refused, not as failed
REFUSALS = frozenset(
    {ErrorKind.TOO_LARGE, ErrorKind.NOT_ALLOWED, ErrorKind.ROBOTS, ErrorKind.PARSE}
)


@dataclass(frozen=True, slots=True)
class _WantedImage:
    """One URL, and its images."""

    images: tuple[PendingImage, ...]

    @property
    def url(self) -> str:
        return self.images[0].url

    @property
    def ids(self) -> list[int]:
        return [image.id for image in self.images]

    @property
    def waited(self) -> float:
        """Seconds since the first of the images was listed or renewed."""
        return max(image.waited for image in self.images)

    @property
    def attempts(self) -> int:
        return max(image.attempts for image in self.images)


class ImageFetcher:
    """Fetches images; any number of processes may run it. Call `aclose`, unless `run` did."""

    def __init__(self, database: Database, settings: Settings, fetching: Fetching) -> None:
        self._database = database
        self._settings = settings
        self._fetching = fetching
        self._files = open_image_files(settings)
        self._inspection = ImageInspection()
        self._due = DueImages(settings, lease=LEASE)
        self._turns = asyncio.Semaphore(AT_ONCE)
        limit = max(1, int(settings.image_max_mb * 1_000_000))
        self._limits = ResponseLimits(body=limit, total=60.0)

    async def run(self) -> None:
        """Fetch due images until it is canceled."""
        outage = Outage(log, "images put off")
        try:
            while self._settings.images:
                done = 0
                try:
                    done = await self.run_once()
                    outage.over()
                except* TRANSIENT_ERRORS as errors:
                    outage.note(errors.exceptions[0])
                if not done:
                    await asyncio.sleep(jittered(INTERVAL))
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        await self._inspection.close()

    async def run_once(self) -> int:
        """Fetch due images; returns how many were fetched or reused."""
        async with self._database.connection() as connection:
            claimed = await self._due.claim(connection, PER_CLAIM)
            if not claimed:
                return 0
            known = await store.select_known_files(connection, claimed, seconds=REUSED_FOR)
        by_url = _by_url(claimed)
        wanted = [each for each in by_url if not await self._reuse(each, known)]
        async with asyncio.TaskGroup() as group:
            turns = [group.create_task(self._fetch_host(each)) for each in _by_host(wanted)]
        return len(by_url) - len(wanted) + sum(turn.result() for turn in turns)

    async def _reuse(self, wanted: _WantedImage, known: dict[tuple[bytes, str], KnownFile]) -> bool:
        first = wanted.images[0]
        file = known.get((first.url_hash, first.domain))
        if file is None:
            return False
        found = await self._database.run(
            store.refer, wanted.ids, file.key, fetched_at=file.fetched_at
        )
        return found > 0

    async def _fetch_host(self, of_host: Sequence[_WantedImage]) -> int:
        """Fetch a few at a time until the turn is over; the rest waits for the next turn.

        While pages of the host are due, images wait. An image that has waited for long is fetched
        before pages.
        """
        if await self._pages_are_due(of_host[0]):
            oldest = max(of_host, key=lambda wanted: wanted.waited)
            due = [oldest] if oldest.waited > LONGEST_BEHIND_PAGES else []
            await self._put_off([each for each in of_host if each not in due], PAGES_FIRST)
            of_host = due
        until = time.monotonic() + HOST_TURN
        few = asyncio.Semaphore(PER_HOST)

        async def fetch(wanted: _WantedImage) -> None:
            async with few, self._turns:
                if time.monotonic() < until:
                    await self._fetch_and_store(wanted)
                else:
                    await self._put_off([wanted], HOST_TURN)

        async with asyncio.TaskGroup() as group:
            for wanted in of_host:
                group.create_task(fetch(wanted))
        return len(of_host)

    async def _fetch_and_store(self, wanted: _WantedImage) -> None:
        try:
            await self._store(wanted, await self._fetch(wanted))
        except HostThrottled as error:
            await self._put_off([wanted], max(error.seconds, MIN_DELAY))
        except DomainInactive as error:
            await self._put_off([wanted], SWITCHED_OFF_WAIT, error.message)
        except GiveUp as error:
            await self._settle(wanted, error)
        except WorkFailed as error:
            await self._failed(wanted, error)
        except (DiskFull, ArchiveError) as error:
            log.warning("image not stored", reason=error.message)
            await self._put_off([wanted], STORAGE_WAIT)

    async def _pages_are_due(self, wanted: _WantedImage) -> bool:
        host = host_of(wanted.url)
        return await self._database.run(store.select_pages_are_due, [host, *parent_domains(host)])

    async def _fetch(self, wanted: _WantedImage) -> bytes:
        image = wanted.images[0]
        proxies = image.use_proxies
        terms = DomainTerms(
            image.domain,
            use_proxies=self._settings.task_proxies if proxies is None else proxies,
            allow_private=image.allow_private,
        )
        request = Request(
            image.url,
            headers={"Accept": "image/*"},
            limits=self._limits,
            is_retry=wanted.attempts > 0,
            is_background=wanted.waited <= LONGEST_BEHIND_PAGES,
        )
        return (await self._fetching.begin(terms).fetch_page(request)).body

    async def _store(self, wanted: _WantedImage, data: bytes) -> None:
        """Store row, file and reference in this order: a crash leaves no dangling reference."""
        found = await self._inspection.inspect(data)
        content_hash = sha256(data).digest()
        path = image_path(content_hash, found.extension)
        file = NewFile(content_hash, path, found.media_type, found.width, found.height, len(data))
        key = await self._database.run(store.touch_file, file)
        if key is None:
            await self._put_off([wanted], FIRST_WAIT)  # it is being deleted at this moment
            return
        if await size_of(self._files, path) != len(data):
            await self._files.put_all(path, data)
        async with self._database.connection() as connection:
            if not await store.refer(connection, wanted.ids, key):
                await store.put_off(
                    connection, wanted.ids, seconds=FIRST_WAIT, problem=None, spent=0
                )

    async def _failed(self, wanted: _WantedImage, error: WorkFailed) -> None:
        attempts = wanted.attempts + 1
        if attempts >= MAX_ATTEMPTS:
            await self._settle(wanted, error)
        else:
            wait = backoff(attempts, FIRST_WAIT, LONGEST_WAIT)
            await self._put_off([wanted], wait, error.message, spent=1)

    async def _settle(self, wanted: _WantedImage, error: WorkFailed) -> None:
        status = "refused" if error.kind in REFUSALS else "failed"
        await self._database.run(
            store.settle_image, wanted.ids, status=status, problem=_problem(error.message)
        )

    async def _put_off(
        self,
        wanted: Sequence[_WantedImage],
        seconds: float,
        problem: str | None = None,
        *,
        spent: int = 0,
    ) -> None:
        await self._database.run(
            store.put_off,
            [image_id for each in wanted for image_id in each.ids],
            seconds=seconds,
            problem=None if problem is None else _problem(problem),
            spent=spent,
        )


def _by_url(images: Sequence[PendingImage]) -> list[_WantedImage]:
    found: dict[tuple[bytes, str], list[PendingImage]] = {}
    for image in images:
        # the terms of domains may differ
        found.setdefault((image.url_hash, image.domain), []).append(image)
    return [_WantedImage(tuple(group)) for group in found.values()]


def _by_host(wanted: Sequence[_WantedImage]) -> list[list[_WantedImage]]:
    found: dict[str, list[_WantedImage]] = {}
    for each in wanted:
        found.setdefault(host_of(each.url), []).append(each)
    return list(found.values())


def _problem(message: str) -> str:
    return storable(message)[:MAX_PROBLEM]


# seconds after which skipped images are checked again
AGAIN_AFTER = 60.0


class DueImages:
    """Claims images for one worker, and skips those of other workers in bounded steps.

    Images of a region without a worker, however many, make no statement slow.
    """

    def __init__(self, settings: Settings, *, lease: float, step: int = 2_000) -> None:
        self._settings = settings
        self._lease = lease
        self._step = step
        self._after = START
        self._began = local_time()

    async def claim(self, connection: Connection, limit: int) -> list[PendingImage]:
        self._begin_again()
        while True:
            until = await store.select_place(connection, after=self._after, count=self._step)
            claimed = await store.claim_images(
                connection,
                limit=limit,
                lease_seconds=self._lease,
                region=self._settings.region,
                task_proxies=self._settings.task_proxies,
                after=self._after,
                until=until,
            )
            if len(claimed) < limit and until is not None:
                self._after = until
            if claimed or until is None:
                return claimed

    def _begin_again(self) -> None:
        if self._after is START or local_time() - self._began > AGAIN_AFTER:
            self._after, self._began = START, local_time()


MODULE = "forager.images.inspector"
LIMITS = SandboxLimits(processes=1, seconds=10.0, memory_mb=640)


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """What an image is, by its bytes."""

    media_type: str
    extension: str
    width: int
    height: int


class ImageInspection:
    """Checks images in a sandbox; raises GiveUp for a file that is not stored."""

    def __init__(self, limits: SandboxLimits = LIMITS) -> None:
        memory = str(limits.memory_mb).encode()
        self._sandboxes = SandboxPool(MODULE, memory, limits, subject="image")

    async def inspect(self, data: bytes) -> ImageInfo:
        """What an image is; raises GiveUp for a file that is none."""
        answer, _ = await self._sandboxes.request({}, data)
        if (refused := answer.get("refused", answer.get("error"))) is not None:
            raise GiveUp(str(refused), kind=ErrorKind.PARSE)
        return ImageInfo(
            answer["media_type"], answer["extension"], answer["width"], answer["height"]
        )

    async def close(self) -> None:
        await self._sandboxes.close()
