"""Downloads of the public file of a function, for those whom its owner granted it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from hushsum._types import PathOrFile
from hushsum.client.http_client import Connection
from hushsum.errors import FileRefused
from hushsum.files.durable_files import atomic_file


def fetch_file(connection: Connection, path: str, sha256: str) -> bytes:
    """The bytes of the function at a path, checked against the digest of the release.

    Raises
    ------
    ServiceRefused
        if the owner did not grant the file.
    FileRefused
        if the digest differs.
    """
    data = connection.request("GET", f"{path}/file", again=True).content
    if hashlib.sha256(data).hexdigest() != sha256:
        raise FileRefused(
            rule="the downloaded file is not the one that was released",
            remedy="report it to the service's administrator",
        )
    return data


def save_file(data: bytes, target: PathOrFile) -> None:
    """Write the bytes; to a path atomically."""
    if isinstance(target, str | os.PathLike):
        with atomic_file(Path(target)) as stream:
            stream.write(data)
    else:
        target.write(data)
