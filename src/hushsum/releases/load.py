"""Read what was released from a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import IO, Any

from hushsum.errors import FileRefused
from hushsum.files.container import FileKind, Header, read_container
from hushsum.releases.base import Released, ReleasedFunction

Builder = Callable[[Header, memoryview], Released]
Sizer = Callable[[Header], int]
_CODECS: dict[str, tuple[Sizer, Builder]] = {}


def register(name: str, payload_size: Sizer, build: Builder) -> None:
    """Make a kind of released function known, so that its files can be read."""
    _CODECS[name] = (payload_size, build)


def check_names(values: Header, *names: str) -> None:
    """ValueError unless a header has these values and no others, whose meaning would be unknown."""
    if set(values) != set(names):
        raise ValueError("names")


def load(source: str | os.PathLike[str] | IO[bytes]) -> ReleasedFunction | Any:
    """The released function in a ``.hush`` file, or the :class:`hushsum.releases.Bundle` of a model.

    Which of the two it is only the file knows, so the type is left open beside the usual one.

    Raises
    ------
    FileRefused
        if the file is damaged, of a later version or of another kind, such as a confidential tally.
    UsageError
        if there is no such file.
    """
    return _read(source, _codec)


def load_function(source: str | os.PathLike[str] | IO[bytes]) -> ReleasedFunction:
    """The released function in a ``.hush`` file, where the bundle of a model will not do; it is refused."""

    def codec(header: Header) -> tuple[Sizer, Builder]:
        if header.get("type") == "bundle":
            raise FileRefused(
                "the file holds a model, not one released function; read it with hushsum.models.load_model"
            )
        return _codec(header)

    function: ReleasedFunction = _read(source, codec)
    return function


def load_table(source: IO[bytes]) -> ReleasedFunction:
    """The released table in the bytes of a file; nothing that holds a further file, so that none nests."""

    def codec(header: Header) -> tuple[Sizer, Builder]:
        if header.get("type") != "table":
            raise FileRefused("the file inside this file must be a released table; get a fresh copy")
        return _codec(header)

    function: ReleasedFunction = _read(source, codec)
    return function


def _read(
    source: str | os.PathLike[str] | IO[bytes], codec: Callable[[Header], tuple[Sizer, Builder]]
) -> Any:
    header, payload = read_container(source, FileKind.RELEASED, lambda h: codec(h)[0](h))
    try:
        return codec(header)[1](header, payload)
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
