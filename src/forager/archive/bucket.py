"""A bucket of an S3-compatible store: how it is opened, and what its answers mean.

What can be mended from outside (a store that does not answer, keys it does not take, a bucket that
is not there) makes work wait. None of it may pass for "there is no such object".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore, from_url

from forager.archive.errors import ArchiveError, DamagedRecord, SegmentExists, StorageAway
from forager.errors import InvalidInput, NotFound
from forager.hints import Hint, action

if TYPE_CHECKING:
    from obstore.store import ClientConfig

# a part of an upload; the store allows no smaller ones than 5 MB, and no more than 10,000
PART_BYTES = 8 * 1024 * 1024
PARTS_AT_ONCE = 4

_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_MISSING_BUCKET = "NoSuchBucket"
_NO_RANGE = "Requested range was invalid"
_MAX_REASON = 300
_KEYS_HINT = "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, and the key's rights."
_AWAY_HINT = Hint(
    "Check AWS_ENDPOINT_URL, or run {}. Work continues when it answers.", action("doctor")
)


@dataclass(frozen=True, slots=True)
class BucketLimits:
    """How long a store may take, and for how long a request is tried again, in seconds."""

    connect: float = 10.0
    request: float = 60.0
    retry: float = 60.0


def open_bucket_store(url: str, limits: BucketLimits | None = None) -> ObjectStore:
    """A bucket by URL; region, endpoint and keys come from the usual `AWS_…` environment."""
    limits = limits or BucketLimits()
    options: ClientConfig = {
        "connect_timeout": timedelta(seconds=limits.connect),
        "timeout": timedelta(seconds=limits.request),
        # only an endpoint that the environment names as http:// is spoken to in the clear
        "allow_http": True,
    }
    try:
        return from_url(
            url,
            client_options=options,
            # the time ends the tries, not their number: a store that restarts is not noticed
            retry_config={"max_retries": 100, "retry_timeout": timedelta(seconds=limits.retry)},
        )
    except BaseError as error:
        raise InvalidInput(f"{url!r} is no place for an archive: {_reason(error)}") from error


async def require_bucket(store: ObjectStore, what: str) -> None:
    """An answer to HEAD has no words: whether the object is missing or the bucket is asked here."""
    with bucket_errors(what):
        async for _ in store.list(what, chunk_size=1):
            break


@contextmanager
def bucket_errors(what: str) -> Iterator[None]:
    """Turn what a store says into the family's words; `what` names the object asked for."""
    try:
        yield
    except (NotFoundError, FileNotFoundError) as error:
        if _code(error) == _MISSING_BUCKET:
            raise _no_bucket(what) from error
        raise NotFound(f"there is no {what}") from error
    except AlreadyExistsError as error:
        raise SegmentExists(f"{what} exists already") from error
    except BaseError as error:
        raise _translated(what, error) from error


def _translated(what: str, error: BaseError) -> Exception:
    code, status = _code(error), _status(error)
    if code == _MISSING_BUCKET:
        return _no_bucket(what)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in (401, 403):
        said = code or "access denied"
        return StorageAway(f"{what}: the object store refuses ({said})", hint=_KEYS_HINT)
    if status == 416 or _NO_RANGE in str(error):
        return DamagedRecord(f"{what} ends before what is referred to")
    if status is not None and 400 <= status < 500 and status not in (408, 429):
        return ArchiveError(f"{what}: the object store answers {status} {code or ''}".rstrip())
    return StorageAway(f"{what}: {_reason(error)}", hint=_AWAY_HINT)


def _no_bucket(what: str) -> StorageAway:
    return StorageAway(
        f"{what}: the bucket does not exist", hint="Make it, or correct FORAGER_ARCHIVE_URL."
    )


def _code(error: Exception) -> str | None:
    match = _CODE.search(str(error))
    return match[1] if match else None


def _status(error: Exception) -> int | None:
    match = _STATUS.search(str(error))
    return int(match[1]) if match else None


def _reason(error: Exception) -> str:
    # the library's message goes on for pages of debug output
    return str(error).partition("\n")[0][:_MAX_REASON]
