"""Receiving an upload: written to the disk completely or not at all."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from hushsum.errors import DataRefused
from hushsum.files import FileKind
from hushsum.service.store import Quota, Upload, now
from hushsum.service.store.datasets import WAITING, check_quota
from hushsum.service.store.rows import new_id

from .context import Call
from .problem_responses import Refusal

# The accepted formats, and the first bytes of a file of each.
FORMATS: Final = {
    "csv": b"",
    "csv.gz": b"\x1f\x8b",
    "parquet": b"PAR1",
    "arrow": b"ARROW1",
    "xlsx": b"PK\x03\x04",
    "tally": FileKind.TALLY.value,
}

_AT_A_TIME = 1 << 20
# Bytes of uploads in progress in this process, by folder and owner.
_IN_PROGRESS: Final[defaultdict[tuple[str, str], int]] = defaultdict(int)


@contextmanager
def _new_file(call: Call, format: str) -> Iterator[tuple[str, IO[bytes], Callable[[], None]]]:
    """The id of a new upload, the file that its bytes are written to, and a call that puts it into its place.
    Of an upload that fails nothing is left behind.
    """
    id = new_id("up")
    path = call.settings.path("uploads", f"{id}.{format}")
    part = path.with_name(f".{path.name}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb", buffering=0) as stream:

            def settle() -> None:
                os.fsync(stream.fileno())
                os.replace(part, path)

            yield id, stream, settle
    except BaseException:
        part.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        raise


async def receive_upload(call: Call, dataset: str, format: str, name: str | None) -> Upload:
    """Write a request's body to the uploads folder, in pieces.

    Raises
    ------
    QuotaExceeded
        as soon as the owner's stored bytes, including other uploads in progress, exceed the quota.
    """
    found = await call.in_thread(call.dataset, dataset)
    datasets, quota = call.store.datasets, call.settings.quota
    kept = await call.in_thread(datasets.kept_by, call.account)
    owner = (call.settings.folder, call.account)
    size = 0

    def grown(by: int) -> None:
        nonlocal size
        size += by
        _IN_PROGRESS[owner] += by
        check_quota(quota, Quota(kept.bytes + _IN_PROGRESS[owner], 0))

    try:
        with _new_file(call, format) as (id, stream, settle):
            await _write_body(call.request, partial(call.in_thread, _write, stream), FORMATS[format], grown)
            await call.in_thread(settle)
            made = Upload(id, found.id, format, size, WAITING, now(), name)
            return await call.in_thread(datasets.add_upload, made, call.actor, quota=quota)
    finally:
        _IN_PROGRESS[owner] -= size
        if not _IN_PROGRESS[owner]:
            del _IN_PROGRESS[owner]


def store_upload(call: Call, dataset: str, content: bytes, format: str, name: str) -> Upload:
    """Store bytes of the service's own, as if its owner had uploaded them.

    Raises
    ------
    QuotaExceeded
        if the owner then keeps too many bytes.
    """
    with _new_file(call, format) as (id, stream, settle):
        _write(stream, content)
        settle()
        made = Upload(id, dataset, format, len(content), WAITING, now(), name)
        return call.store.datasets.add_upload(made, call.actor, quota=call.settings.quota)


async def _write_body(
    request: Request, write: Callable[[bytes], Awaitable[None]], magic: bytes, grown: Callable[[int], None]
) -> None:
    pending = bytearray()
    size = 0
    checked = False
    try:
        async for piece in request.stream():
            pending += piece
            size += len(piece)
            grown(len(piece))
            if not checked and size >= max(len(magic), 1):
                checked = True
                if not pending.startswith(magic):
                    raise DataRefused("the content does not match the format", remedy="give the right format")
            if len(pending) >= _AT_A_TIME:
                await write(bytes(pending))
                pending.clear()
    except ClientDisconnect:
        raise Refusal(400, "bad-request", "the upload is incomplete; send it again") from None
    if not checked:
        raise DataRefused("an upload must not be empty", remedy="send the bytes of a file")
    await write(bytes(pending))


def _write(stream: IO[bytes], data: bytes) -> None:
    """All of it: an unbuffered write may take only a part before the disk is full."""
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]
