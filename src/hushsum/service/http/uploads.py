"""Receiving an upload: written to the disk completely or not at all."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import IO, Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from hushsum.files import FileKind
from hushsum.service.http.authentication import Caller
from hushsum.service.http.context import Context
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.store import Actor, Quota, Upload
from hushsum.service.store.database import new_id
from hushsum.service.store.datasets import check_quota

FORMATS: Final = {
    "csv": b"",
    "csv.gz": b"\x1f\x8b",
    "parquet": b"PAR1",
    "arrow": b"ARROW1",
    "xlsx": b"PK\x03\x04",
    "tally": FileKind.TALLY.value,
}
"""The accepted formats, and the first bytes of a file of each."""

_AT_A_TIME = 1 << 20
_IN_PROGRESS: Final[defaultdict[tuple[str, str], int]] = defaultdict(int)
"""Bytes of uploads in progress in this process, by folder and owner."""


async def receive_upload(
    request: Request,
    context: Context,
    dataset: str,
    caller: Caller,
    format: str,
    actor: Actor,
    name: str | None,
) -> Upload:
    """Write a request's body to the uploads folder, in pieces; a failed upload leaves nothing behind.

    Raises
    ------
    QuotaExceeded
        as soon as the owner's stored bytes, including other uploads in progress, exceed the quota.
    """
    in_thread = partial(context.in_thread, caller)
    found = await in_thread(context.dataset, dataset, caller)
    kept = await in_thread(context.datasets.kept_by, caller.account)
    quota = context.settings.quota
    owner = (context.settings.folder, caller.account)
    id = new_id("up")
    path = context.settings.path("uploads", f"{id}.{format}")
    part = path.with_name(f".{path.name}.part")
    size = 0
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

        def grown(by: int) -> None:
            nonlocal size
            size += by
            _IN_PROGRESS[owner] += by
            check_quota(quota, Quota(kept.bytes + _IN_PROGRESS[owner], 0))

        with os.fdopen(descriptor, "wb", buffering=0) as stream:
            await _write_body(request, partial(in_thread, _write, stream), FORMATS[format], grown)
            await in_thread(_settle, stream, part, path)
        return await in_thread(
            context.datasets.add_upload, id, found.id, format, size, actor, name=name, quota=quota
        )
    except BaseException:
        part.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        raise
    finally:
        _IN_PROGRESS[owner] -= size
        if not _IN_PROGRESS[owner]:
            del _IN_PROGRESS[owner]


def store_upload(
    context: Context, dataset: str, content: bytes, format: str, actor: Actor, name: str
) -> Upload:
    """Store bytes of the service's own, as if its owner had uploaded them.

    Raises
    ------
    QuotaExceeded
        if the owner then keeps too many bytes.
    """
    id = new_id("up")
    path = context.settings.path("uploads", f"{id}.{format}")
    part = path.with_name(f".{path.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(content)
            stream.flush()
            _settle(stream, part, path)
        return context.datasets.add_upload(
            id, dataset, format, len(content), actor, name=name, quota=context.settings.quota
        )
    except BaseException:
        part.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        raise


async def _write_body(
    request: Request,
    write: Callable[[bytes], Awaitable[None]],
    magic: bytes,
    grown: Callable[[int], None],
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
                    raise Refusal(
                        422, "data-refused", "the content does not match the format; give the right format"
                    )
            if len(pending) >= _AT_A_TIME:
                await write(bytes(pending))
                pending.clear()
    except ClientDisconnect:
        raise Refusal(400, "bad-request", "the upload is incomplete; send it again") from None
    if not checked:
        raise Refusal(422, "data-refused", "an upload must not be empty; send the bytes of a file")
    await write(bytes(pending))


def _write(stream: IO[bytes], data: bytes) -> None:
    """All of it: an unbuffered write may take only a part before the disk is full."""
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


def _settle(stream: IO[bytes], part: Path, path: Path) -> None:
    os.fsync(stream.fileno())
    os.replace(part, path)
