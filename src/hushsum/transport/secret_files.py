"""Files that hold a secret: made once, never replaced, and readable by their owner alone."""

from __future__ import annotations

import os
import stat

from hushsum.errors import UsageError

_MOST = 1 << 16


def write_secret(path: str | os.PathLike[str], secret: bytes) -> None:
    """Write a new file of mode 0600, durably.

    Raises
    ------
    UsageError
        if the file exists: others rely on what it holds.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UsageError(
            rule=f"{os.fspath(path)!r} exists, and a key is never replaced", remedy="give another output"
        ) from None
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(secret)
        stream.flush()
        os.fsync(stream.fileno())


def read_secret(path: str | os.PathLike[str], *, maker: str) -> bytes:
    """What a secret file holds; ``maker`` is the command that makes one.

    Raises
    ------
    UsageError
        if there is none, or other users of the machine can read it.
    """
    name = os.fspath(path)
    try:
        with open(path, "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            held = stream.read(_MOST)
    except FileNotFoundError:
        raise UsageError(rule=f"no key file {name!r}", remedy=f"make one with: {maker}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise UsageError(
            rule=f"{name!r} must be readable by its owner alone", remedy=f"run: chmod 600 {name}"
        )
    return held
