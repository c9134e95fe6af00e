"""One container for all file kinds: magic, version, JSON header, payload, SHA-256.

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

import dataclasses
import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar

from hushsum._types import PathOrFile
from hushsum.errors import FilePath, FileRefused, UsageError
from hushsum.files.durable_files import atomic_file

VERSION = 1
"""Of the format. Readers refuse files of any other."""

_PREFIX = struct.Struct("<8sIIQ")
_DIGEST = hashlib.sha256().digest_size
_MAX_HEADER = 1 << 20
_STEP = 1 << 24

Header = dict[str, Any]
T = TypeVar("T")
Buffer = bytes | bytearray | memoryview


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
    """What a file is; the value is its magic, which no text editor or line-ending filter leaves intact."""

    RELEASED = b"\x89HUSH\r\n\n"
    TALLY = b"\x89TALY\r\n\n"
    SERVED = b"\x89SRVD\r\n\n"
    CHECKPOINT = b"\x89CKPT\r\n\n"
    STREAM = b"\x89STRM\r\n\n"

    @property
    def noun(self) -> str:
        """The kind in words, for messages."""
        return {
            FileKind.RELEASED: "a released function (.hush)",
            FileKind.TALLY: "a confidential tally (.tally)",
            FileKind.SERVED: "a confidential function that is served (.secret)",
            FileKind.CHECKPOINT: "a confidential checkpoint of a count that is not finished (.checkpoint)",
            FileKind.STREAM: "a confidential state of a stream (.stream)",
        }[self]


def canonical_json(value: object) -> bytes:
    """The one JSON spelling of a value: sorted keys, no spaces, UTF-8, no NaN.

    >>> canonical_json({"b": 1, "a": [1.5, "é"]}).decode()
    '{"a":[1.5,"é"],"b":1}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def declared_fields(value: Any) -> Any:
    """A frozen dataclass of public settings as JSON: its fields by name, without those that have their
    default, so that a field which a later version adds does not change what is written today.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Size:
    ...     rows: int
    ...     width: int | None = None
    >>> declared_fields([Size(5), Size(5, 3)])
    [{'rows': 5}, {'rows': 5, 'width': 3}]
    """
    if dataclasses.is_dataclass(value):
        stated = {each.name: (getattr(value, each.name), each) for each in dataclasses.fields(value)}
        return {
            name: declared_fields(given) for name, (given, each) in stated.items() if given != _default(each)
        }
    if isinstance(value, Mapping):
        return {str(name): declared_fields(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [declared_fields(each) for each in value]
    return str(value) if isinstance(value, Fraction | Path) else value


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


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
    encoded = canonical_json(header if paged is None else {**header, "paged": paged.size})
    if len(encoded) > _MAX_HEADER:
        raise UsageError(
            rule=f"header must be at most {_MAX_HEADER} bytes", got=len(encoded), remedy="use fewer columns"
        )
    parts = [Section.of(section) for section in sections]
    size = sum(part.size for part in parts) + (0 if paged is None else _paged_size(paged.size))
    start = _PREFIX.pack(kind.value, VERSION, len(encoded), size) + encoded
    if not isinstance(target, str | os.PathLike):
        _write_parts(target, start, paged, parts)
        return
    path = Path(target)
    if not path.parent.is_dir():
        raise UsageError(
            rule=("no folder ", FilePath(path.parent, service="the folder", quoted=True), " to write into"),
            remedy="make it first",
        )
    with atomic_file(path, mode=mode) as stream:
        _write_parts(stream, start, paged, parts)


def read_container(
    source: PathOrFile,
    kind: FileKind,
    payload_size: Callable[[Header], int],
) -> tuple[Header, memoryview]:
    """Read and check a container of the given kind.

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
            raise UsageError(
                rule=("no file ", FilePath(path, quoted=True)), remedy="check the path"
            ) from None
        except IsADirectoryError:
            raise UsageError(
                rule=(FilePath(path, quoted=True), " is a folder"), remedy="give the file in it"
            ) from None
    return _read_stream(source, kind, payload_size, name=_name_of(source), size=None)


def _name_of(stream: IO[bytes]) -> str:
    """The name of an open file; streams in memory, sockets and standard input have none."""
    name = getattr(stream, "name", None)
    return Path(name).name if isinstance(name, str) and not name.startswith("<") else "the input"


def build_from(header: Header, payload: memoryview, build: Callable[[Header, memoryview], T]) -> T:
    """What ``build`` makes of the contents of a container.

    Raises
    ------
    FileRefused
        if the header is one that nothing could have written, though the checksum is right.
    """
    try:
        return build(header, payload)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise FileRefused(
            rule="the file's header makes no sense, though its checksum holds", remedy="ask who wrote it"
        ) from None


def _read_stream(
    stream: IO[bytes],
    kind: FileKind,
    payload_size: Callable[[Header], int],
    *,
    name: str,
    size: int | None,
) -> tuple[Header, memoryview]:
    digest = hashlib.sha256()
    prefix = _take(stream, _PREFIX.size, name)
    magic, version, header_length, payload_length = _PREFIX.unpack(prefix)
    _check_magic(magic, kind, name)
    if version != VERSION:
        raise FileRefused(
            rule=(FilePath(name), f" has format version {version}, this Hushsum reads version {VERSION}"),
            remedy="install another one",
        )
    if header_length > _MAX_HEADER:
        raise _damaged(name)
    if size is not None and size != _PREFIX.size + header_length + payload_length + _DIGEST:
        raise _damaged(name)
    encoded = _take(stream, header_length, name)
    header = _parse_header(encoded, name)
    try:
        promised = payload_size(header)
    except FileRefused:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
        raise _damaged(name) from None
    if promised != payload_length:
        raise _damaged(name)
    paged = _paged_length(header, kind, payload_length, name)
    if paged and size is not None:
        view = memoryview(mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ))
        payload, last = view[_PREFIX.size + header_length : size - _DIGEST], view[size - _DIGEST :]
    else:
        payload = _take(stream, payload_length, name)
        last = _take(stream, _DIGEST, name)
        if stream.read(1):
            raise _damaged(name)
    digest.update(prefix)
    digest.update(encoded)
    digest.update(payload[paged:])
    if bytes(last) != digest.digest():
        raise _damaged(name)
    return header, payload


def _paged_length(header: Header, kind: FileKind, payload_length: int, name: str) -> int:
    """The length of the paged part, which only released files have."""
    paged = header.get("paged", 0)
    allowed = kind is FileKind.RELEASED and type(paged) is int and paged >= 0
    if "paged" not in header:
        return 0
    if not allowed or _paged_size(paged) > payload_length:
        raise _damaged(name)
    return int(paged)


def _paged_size(paged: int) -> int:
    from hushsum.files.checksummed_pages import digests_size

    return paged + digests_size(paged)


def _check_magic(magic: bytes, kind: FileKind, name: str) -> None:
    if magic == kind.value:
        return
    other = next((each for each in FileKind if each.value == magic), None)
    if other is not None:
        raise FileRefused(
            rule=(FilePath(name), f" is {other.noun}, not {kind.noun}"), remedy="give the right file"
        )
    raise FileRefused(
        rule=(FilePath(name), f" is not {kind.noun}"),
        remedy="it may be another format, or its first bytes are damaged",
    )


def _parse_header(encoded: memoryview, name: str) -> Header:
    try:
        header = json.loads(bytes(encoded))
        # One spelling only: two files with the same content have the same bytes and the same checksum.
        canonical = isinstance(header, dict) and canonical_json(header) == bytes(encoded)
    except (ValueError, RecursionError):
        raise _damaged(name) from None
    if not canonical:
        raise _damaged(name)
    return dict(header)


def _take(stream: IO[bytes], size: int, name: str) -> memoryview:
    """Exactly ``size`` bytes, grown step by step so that a false length costs no memory the file does not
    back.
    """
    data = bytearray()
    while len(data) < size:
        piece = stream.read(min(_STEP, size - len(data)))
        if not piece:
            raise _damaged(name)
        data += piece
    return memoryview(data)


def _damaged(name: str) -> FileRefused:
    return FileRefused(
        rule=(FilePath(name), " is damaged: its bytes do not match its checksum or its lengths"),
        remedy="get a fresh copy",
    )


def _write_parts(stream: IO[bytes], start: bytes, paged: Section | None, parts: Iterable[Section]) -> None:
    digest = hashlib.sha256(start)
    stream.write(start)
    digests = [] if paged is None else _write_pages(stream, paged)
    for piece in chain(chain.from_iterable(part.pieces() for part in parts), digests):
        digest.update(piece)
        stream.write(piece)
    stream.write(digest.digest())


def _write_pages(stream: IO[bytes], paged: Section) -> list[bytes]:
    """Write the paged part and return the digests of its pages."""
    from hushsum.files.checksummed_pages import page_digests, whole_pages

    digests = []
    for piece in whole_pages(paged.pieces()):
        digests.append(page_digests(piece))
        stream.write(piece)
    return digests
