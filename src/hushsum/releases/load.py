"""Read a released function from a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Any

from hushsum.errors import FileRefused
from hushsum.files.container import FileKind, Header, read_container
from hushsum.releases.base import ReleasedFunction

Builder = Callable[[Header, memoryview], ReleasedFunction]
Sizer = Callable[[Header], int]
_CODECS: dict[str, tuple[Sizer, Builder]] = {}


def register(name: str, payload_size: Sizer, build: Builder) -> None:
    """Make a kind of released function known, so that its files can be read."""
    _CODECS[name] = (payload_size, build)


def load(source: str | os.PathLike[str] | IO[bytes]) -> ReleasedFunction:
    """The released function in a ``.hush`` file.

    Raises
    ------
    FileRefused
        if the file is damaged, of a later version or of another kind, such as a confidential tally.
    UsageError
        if there is no such file.
    """
    header, payload = read_container(source, FileKind.RELEASED, lambda h: _codec(h)[0](h))
    try:
        return _codec(header)[1](header, payload)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise FileRefused(
            "the file's header makes no sense, though its checksum holds; ask who wrote it"
        ) from None


def _codec(header: dict[str, Any]) -> tuple[Sizer, Builder]:
    name = header.get("type")
    if name not in _CODECS:
        raise FileRefused(
            f"the file holds a function of type {name!r}, which this Hushsum does not know; upgrade it"
        )
    return _CODECS[name]
