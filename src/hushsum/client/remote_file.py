"""The public file of a function that lives in a service, for those whom its owner allows it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO

from hushsum.client.wire import Wire
from hushsum.errors import FileRefused
from hushsum.files.atomic import atomic_file


def fetch_file(wire: Wire, function: str, sha256: str) -> bytes:
    """The bytes, if they are those that were released.

    Raises
    ------
    ServiceRefused
        if the owner does not allow it.
    FileRefused
        if they are others.
    """
    data = wire.request("GET", f"/functions/{function}/file", again=True).content
    if hashlib.sha256(data).hexdigest() != sha256:
        raise FileRefused("the file that came is not the one that was released; ask the service's keeper")
    return data


def save_file(data: bytes, target: str | os.PathLike[str] | IO[bytes]) -> None:
    """Write the bytes; to a path atomically."""
    if isinstance(target, str | os.PathLike):
        with atomic_file(Path(target)) as stream:
            stream.write(data)
    else:
        target.write(data)
