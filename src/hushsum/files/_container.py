"""The container of files and messages, which checks itself: magic, version, JSON header, payload, SHA-256.

Layout, little-endian::

    offset        size  what
    0             8     magic: which kind of file this is
    8             4     format version (u32)
    12            4     header length h (u32)
    16            8     payload length p (u64)
    24            h     header: canonical JSON (sorted keys, no spaces, UTF-8)
    24+h          p     payload: raw bytes, laid out as the header states
    24+h+p        32    SHA-256 of everything before it

The payload of a large released table starts with a paged part, whose length n is the header's ``paged``::

    24+h          n     the paged part
    24+h+n        s     other sections
    24+h+n+s      32·⌈n/4096⌉   SHA-256 of each page of 4096 bytes of the paged part
    24+h+p        32    SHA-256 of everything before it, but for the paged part

A path is then memory-mapped. The last checksum is verified when the file is opened, and with it everything
but the pages; a page is verified before anything in it is used for the first time.

Nothing in a file is code: reading one runs no pickle. Lengths are checked against the file and against what
the header promises before anything of that size is allocated, and any changed byte is refused.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar

from numpy.typing import NDArray

from hushsum._types import PathOrFile
from hushsum.errors import FilePath, FileRefused, UsageError

from ._durable import atomic_file
from ._encoding import canonical_json, decode_array, encode_array, encoded_size

__all__ = [
    "VERSION", "Buffer", "FileKind", "Header", "PageCheck", "Section", "build_from", "check_spelling",
    "container", "digests_size", "pack", "page_digests", "read_container", "unpack", "write_container",
]  # fmt: skip

VERSION = 1
"""The version of the format. Readers refuse files of any other."""

_PREFIX = struct.Struct("<8sIIQ")
_DIGEST = hashlib.sha256().digest_size
_PAGE = 4096
_MAX_HEADER = 1 << 20
_MAX_MESSAGE_HEADER = 1 << 22
_STEP = 1 << 24
# The errors of reading a header that nothing could have written.
_SENSELESS = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError)

Header = dict[str, Any]
T = TypeVar("T")
Buffer = bytes | bytearray | memoryview
Source = PathOrFile | memoryview


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a payload that is made while it is written: its length, and what gives its pieces."""

    size: int
    pieces: Callable[[], Iterable[Buffer]]

    @classmethod
    def of(cls, section: Buffer | Section) -> Section:
        """Bytes that exist already as a section."""
        if isinstance(section, Section):
            return section
        view = memoryview(section).cast("B")
        return cls(len(view), lambda: [view])


class FileKind(Enum):
    """The kinds of files; the value is the magic, which no text editor or line filter leaves intact."""

    RELEASED = b"\x89HUSH\r\n\n", "a released function (.hush)"
    TALLY = b"\x89TALY\r\n\n", "a confidential tally (.tally)"
    SERVED = b"\x89SRVD\r\n\n", "a confidential function that is served (.secret)"
    CHECKPOINT = (
        b"\x89CKPT\r\n\n",
        "a confidential checkpoint of a count that is not finished (.checkpoint)",
    )
    STREAM = b"\x89STRM\r\n\n", "a confidential state of a stream (.stream)"
    MESSAGE = b"\x89MESG\r\n\n", "a message"

    noun: str
    """The kind in words, for messages."""

    def __new__(cls, magic: bytes, noun: str) -> FileKind:
        kind = object.__new__(cls)
        kind._value_, kind.noun = magic, noun
        return kind


def container(
    kind: FileKind,
    header: Mapping[str, object],
    sections: Iterable[Buffer | Section],
    *,
    paged: Section | None = None,
) -> Section:
    """The bytes of a container, made while they are written. ``paged`` becomes the paged part."""
    encoded = canonical_json(header if paged is None else {**header, "paged": paged.size})
    if len(encoded) > _longest_header(kind):
        rule = f"header must be at most {_longest_header(kind)} bytes"
        raise UsageError(rule, got=len(encoded), remedy="use fewer columns")
    parts = [Section.of(section) for section in sections]
    size = sum(part.size for part in parts) + (0 if paged is None else _paged_size(paged.size))
    start = _PREFIX.pack(kind.value, VERSION, len(encoded), size) + encoded

    def pieces() -> Iterator[Buffer]:
        digest = hashlib.sha256(start)
        yield start
        digests: list[bytes] = []
        for page in () if paged is None else _whole_pages(paged.pieces()):
            digests.append(page_digests(page))
            yield page
        for piece in chain(chain.from_iterable(part.pieces() for part in parts), digests):
            digest.update(piece)
            yield piece
        yield digest.digest()

    return Section(len(start) + size + _DIGEST, pieces)


def write_container(
    target: PathOrFile,
    kind: FileKind,
    header: Mapping[str, object],
    sections: Iterable[Buffer | Section],
    *,
    paged: Section | None = None,
    mode: int = 0o644,
) -> None:
    """Write a container; to a path atomically, so that a reader sees the old file, none, or the whole new
    one.

    ``paged`` becomes the paged part. ``mode`` is the permission of a new file, before the process's umask.
    """
    pieces = container(kind, header, sections, paged=paged).pieces()
    opened: AbstractContextManager[IO[bytes]]
    if isinstance(target, str | os.PathLike):
        path = Path(target)
        if not path.parent.is_dir():
            folder = FilePath(path.parent, service="the folder", quoted=True)
            raise UsageError(("no folder ", folder, " to write into"), remedy="make it first")
        opened = atomic_file(path, mode=mode)
    else:
        opened = nullcontext(target)
    with opened as stream:
        for piece in pieces:
            stream.write(piece)


def read_container(
    source: Source, kind: FileKind, payload_size: Callable[[Header], int]
) -> tuple[Header, memoryview]:
    """Read and check a container of the given kind: a file, a stream, or bytes in memory (not copied).

    ``payload_size`` computes from the header how long the payload must be; it is called before the payload
    is read, so a damaged or hostile length allocates nothing.

    Raises
    ------
    FileRefused
        if the file is of another kind, of a later version, truncated, or any byte of it was changed.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        try:
            with open(path, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                return _read_stream(stream, kind, payload_size, name=path.name, size=size)
        except FileNotFoundError:
            raise UsageError(("no file ", FilePath(path, quoted=True))) from None
        except IsADirectoryError:
            raise UsageError(
                (FilePath(path, quoted=True), " is a folder"), remedy="give the file in it"
            ) from None
    if isinstance(source, memoryview):
        return _read_stream(_Memory(source), kind, payload_size, name="the input", size=len(source))
    return _read_stream(source, kind, payload_size, name=_name_of(source), size=None)


class _Memory:
    """Bytes in memory as a stream that copies nothing."""

    def __init__(self, data: memoryview) -> None:
        self._rest = data

    def read(self, size: int) -> memoryview:
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def _name_of(stream: IO[bytes]) -> str:
    """The name of an open file; streams in memory, sockets and standard input have none."""
    name = getattr(stream, "name", None)
    return Path(name).name if isinstance(name, str) and not name.startswith("<") else "the input"


def build_from(header: Header, payload: memoryview, build: Callable[[Header, memoryview], T]) -> T:
    """Build an object from the contents of a container.

    Raises
    ------
    FileRefused
        if the header is one that nothing could have written, though the checksum is right.
    """
    try:
        return build(header, payload)
    except _SENSELESS:
        raise FileRefused(
            "the file's header makes no sense, though its checksum holds", remedy="ask who wrote it"
        ) from None


def _read_stream(
    stream: IO[bytes] | _Memory,
    kind: FileKind,
    payload_size: Callable[[Header], int],
    *,
    name: str,
    size: int | None,
) -> tuple[Header, memoryview]:
    prefix = _take(stream, _PREFIX.size, name)
    magic, version, header_length, payload_length = _PREFIX.unpack(prefix)
    _check_magic(magic, kind, name)
    if version != VERSION:
        raise FileRefused(
            (FilePath(name), f" has format version {version}, this Hushsum reads version {VERSION}"),
            remedy="install another one",
        )
    whole = _PREFIX.size + header_length + payload_length + _DIGEST
    if header_length > _longest_header(kind) or size not in (None, whole):
        raise _damaged(name)
    encoded = _take(stream, header_length, name)
    header = _parse_header(encoded, name)
    try:
        promised = payload_size(header)
    except FileRefused:
        raise
    except _SENSELESS:
        raise _damaged(name) from None
    # The paged part, which only released files have.
    paged = header.get("paged", 0)
    known = type(paged) is int and paged >= 0 and (kind is FileKind.RELEASED or "paged" not in header)
    if promised != payload_length or not known or _paged_size(paged) > payload_length:
        raise _damaged(name)
    if paged and size is not None and not isinstance(stream, _Memory):
        view = memoryview(mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ))
        payload, last = view[_PREFIX.size + header_length : size - _DIGEST], view[size - _DIGEST :]
    else:
        payload = _take(stream, payload_length, name)
        last = _take(stream, _DIGEST, name)
        if stream.read(1):
            raise _damaged(name)
    digest = hashlib.sha256(prefix)
    digest.update(encoded)
    digest.update(payload[paged:])
    if bytes(last) != digest.digest():
        raise _damaged(name)
    return header, payload


def _paged_size(paged: int) -> int:
    return paged + digests_size(paged)


def _longest_header(kind: FileKind) -> int:
    return _MAX_MESSAGE_HEADER if kind is FileKind.MESSAGE else _MAX_HEADER


def _check_magic(magic: bytes, kind: FileKind, name: str) -> None:
    if magic == kind.value:
        return
    other = next((f"{each.noun}, " for each in FileKind if each.value == magic), "")
    remedy = "give the right file" if other else "it may be another format, or its first bytes are damaged"
    raise FileRefused((FilePath(name), f" is {other}not {kind.noun}"), remedy=remedy)


def _parse_header(encoded: memoryview, name: str) -> Header:
    try:
        header = json.loads(bytes(encoded))
        # One spelling only: two files with the same content have the same bytes and the same checksum.
        if isinstance(header, dict) and canonical_json(header) == bytes(encoded):
            return header
    except (ValueError, RecursionError):
        pass
    raise _damaged(name)


def _take(stream: IO[bytes] | _Memory, size: int, name: str) -> memoryview:
    """Exactly ``size`` bytes, grown step by step so that a false length costs no memory the file does not
    back.
    """
    piece: Buffer = stream.read(size if isinstance(stream, _Memory) else min(_STEP, size))
    if len(piece) == size:
        return memoryview(piece)
    data = bytearray(piece)
    while len(data) < size:
        piece = stream.read(min(_STEP, size - len(data)))
        if not piece:
            raise _damaged(name)
        data += piece
    return memoryview(data)


def _damaged(name: str) -> FileRefused:
    return FileRefused(
        (FilePath(name), " is damaged: its bytes do not match its checksum or its lengths"),
        remedy="get a fresh copy",
    )


def digests_size(paged: int) -> int:
    """The number of bytes that the digests of a paged part take."""
    return -(-paged // _PAGE) * _DIGEST


def _whole_pages(parts: Iterable[Buffer]) -> Iterator[memoryview]:
    """The same bytes in pieces of whole pages, but for the last."""
    rest = b""
    for part in parts:
        view = memoryview(part).cast("B")
        if rest:
            view = memoryview(rest + bytes(view))
        end = len(view) // _PAGE * _PAGE
        if end:
            yield view[:end]
        rest = bytes(view[end:])
    if rest:
        yield memoryview(rest)


def page_digests(piece: memoryview) -> bytes:
    """The SHA-256 of each page."""
    return b"".join(
        hashlib.sha256(piece[start : start + _PAGE]).digest() for start in range(0, len(piece), _PAGE)
    )


class PageCheck:
    """Compares pages with their digests; called with the number of a page, raises FileRefused if it differs.

    The digests are covered by the file's checksum, which was verified when the file was opened.
    """

    __slots__ = ("_digests", "_paged")

    def __init__(self, paged: memoryview, digests: memoryview) -> None:
        self._paged = paged
        self._digests = digests

    def __call__(self, page: int) -> None:
        """Check one page."""
        found = hashlib.sha256(self._paged[page * _PAGE : (page + 1) * _PAGE]).digest()
        if found != self._digests[page * _DIGEST : (page + 1) * _DIGEST]:
            raise FileRefused(
                "the file is damaged: a page of its table does not match its checksum",
                remedy="get a fresh copy",
            )


def pack(kind: str, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A message as bytes: equal messages have equal bytes.

    >>> import numpy as np
    >>> kind, values, arrays = unpack(pack("x", {"a": 1}, {"v": np.arange(3)}), "x")
    >>> values, arrays["v"].tolist()
    ({'a': 1}, [0, 1, 2])
    """
    named = sorted(arrays.items())
    layout = [[name, array.dtype.name, list(array.shape)] for name, array in named]
    header = {"kind": kind, "values": dict(values), "arrays": layout}
    sections = [encode_array(array, array.dtype.name) for _, array in named]
    return b"".join(container(FileKind.MESSAGE, header, sections).pieces())


def unpack(
    data: bytes, *kinds: str, most: int | None = None
) -> tuple[str, dict[str, Any], dict[str, NDArray[Any]]]:
    """The message back, if it is one of ``kinds``, at most ``most`` bytes long, and no byte was changed.

    Raises
    ------
    FileRefused
        otherwise.
    """
    if most is not None and len(data) > most:
        raise FileRefused(f"a message must be at most {most} bytes", got=len(data))
    try:
        header, payload = read_container(memoryview(data), FileKind.MESSAGE, _arrays_size)
        if set(header) != {"kind", "values", "arrays"} or header["kind"] not in kinds:
            raise ValueError("kind")
        return header["kind"], header["values"], _arrays(header["arrays"], payload)
    except (FileRefused, *_SENSELESS):
        raise FileRefused(
            f"these bytes hold no {' or '.join(kinds)}: damaged, or of another kind",
            remedy="get a fresh copy",
        ) from None


def _arrays_size(header: Header) -> int:
    return sum(encoded_size(tuple(shape), type_name, reals=True) for _, type_name, shape in header["arrays"])


def _arrays(layout: list[Any], payload: memoryview) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    start = 0
    for name, type_name, shape in layout:
        if type(name) is not str or name in arrays:
            raise ValueError("array")
        end = start + encoded_size(tuple(shape), type_name, reals=True)
        # A copy: what is kept must not hang on a network buffer.
        arrays[name] = decode_array(payload[start:end], tuple(shape), type_name).copy()
        start = end
    return arrays


def check_spelling(found: object, written: object) -> None:
    """Raise ValueError unless the bytes or the JSON that were read equal what would be written for the object
    read from them. So a file has no names, at any depth, that the reader ignored, and no number of another
    type.

    >>> check_spelling({"shape": [4, 4.0]}, {"shape": [4, 4]})
    Traceback (most recent call last):
    ...
    ValueError: another spelling
    """
    found, written = (each if isinstance(each, bytes) else canonical_json(each) for each in (found, written))
    if found != written:
        raise ValueError("another spelling")
