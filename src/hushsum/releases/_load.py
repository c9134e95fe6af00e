"""Read what was released from a file."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO

from hushsum._types import PathOrFile
from hushsum.errors import FileRefused, PerSurface
from hushsum.files import FileKind, Header, build_from, read_container
from hushsum.releases._base import Released, ReleasedFunction
from hushsum.tables import load_baselines

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


def load_released(source: PathOrFile) -> Released:
    """What a ``.hush`` file holds: a released function, or the :class:`hushsum.releases.Bundle` of a model.

    Raises
    ------
    FileRefused
        if the file is damaged, of a later version or of another kind, such as a confidential tally.
    UsageError
        if there is no such file.
    """
    return _read(source, _codec)


def load_function(source: PathOrFile) -> ReleasedFunction:
    """The released function in a ``.hush`` file; the bundle of a model is refused."""

    def codec(header: Header) -> tuple[Sizer, Builder]:
        if header.get("type") == "bundle":
            raise FileRefused(
                "the file holds a model, not one released function",
                remedy=PerSurface("read it with hushsum.load", "use hushsum predict", "predict with it"),
            )
        return _codec(header)

    return function_in(_read(source, codec))


def load_table(source: IO[bytes]) -> ReleasedFunction:
    """The released table in the bytes of a file; nothing that holds a further file, so that none nests."""

    def codec(header: Header) -> tuple[Sizer, Builder]:
        if header.get("type") != "table":
            raise FileRefused("the file inside this file must be a released table", remedy="get a fresh copy")
        return _codec(header)

    return function_in(_read(source, codec))


def pickled(released: Released) -> tuple[Callable[[bytes], Released], tuple[bytes]]:
    """For ``__reduce__``: a pickle holds the bytes of the file, and is read as suspiciously."""
    buffer = io.BytesIO()
    released.save(buffer)
    return _from_bytes, (buffer.getvalue(),)


def _from_bytes(payload: bytes) -> Released:
    return load_released(io.BytesIO(payload))


def function_in(released: Released) -> ReleasedFunction:
    """What a codec made, which is a function unless it is a bundle."""
    if not isinstance(released, ReleasedFunction):
        raise TypeError(f"{type(released).__name__} is not a released function")
    return released


def _read(source: PathOrFile, codec: Callable[[Header], tuple[Sizer, Builder]]) -> Released:
    header, payload = read_container(source, FileKind.RELEASED, lambda h: codec(h)[0](h))
    return build_from(header, payload, codec(header)[1])


def _codec(header: Header) -> tuple[Sizer, Builder]:
    name = header.get("type")
    if name not in _CODECS:
        load_baselines()
    if name not in _CODECS:
        raise FileRefused(
            f"the file holds a function of type {name!r}, which this version of Hushsum does not have",
            remedy="upgrade it",
        )
    return _CODECS[name]
