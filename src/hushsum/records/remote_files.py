"""Files that are addressed by URLs: their sizes, globs, and local copies of what is read of them.

``s3://``, ``gs://`` and ``gcs://`` go through Arrow's filesystems, and everything else (``https://``, ``abfs://``,
…) through fsspec. Credentials come from the environment of the process, as the vendors define it. A file is
decoded by the same limited process as a local one, which is given no credentials: what is needed of the file
is copied into a temporary file first. Of a Parquet file these are its footer and the row groups that are
read.

URLs may contain credentials, so that messages show them without user, query and fragment, and no message of
a filesystem is passed on.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
import shutil
import struct
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from hushsum.errors import DataRefused, FilePath, UsageError
from hushsum.records import arrow

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_WILDCARDS: Final = re.compile(r"[*?\[]")
_PIECE: Final = 1 << 22
_TAIL: Final = 1 << 16
_FOOTER: Final = struct.Struct("<I4s")
_ARROW_SCHEMES: Final = ("s3", "gs", "gcs")
MOST_FILES: Final = 1 << 20


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an address, such as ``s3://bucket/file.parquet``.

    >>> is_url("s3://bucket/a.csv"), is_url("C:/a.csv"), is_url("a.csv")
    (True, False, False)
    """
    return isinstance(path, str) and _URL.match(path) is not None


def shown_path(path: str) -> str:
    """A path as messages may show it: an address without user, password, query and fragment.

    >>> shown_path("https://ann:secret@host:8080/a.csv?token=1#x")
    'https://host:8080/a.csv'
    """
    if not is_url(path):
        return path
    scheme, rest = path.split("://", 1)
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    place, slash, inner = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{inner}"


def file_name(path: str) -> str:
    """The last part of a path or an address, whose suffix says what the file is."""
    return PurePosixPath(shown_path(path)).name if is_url(path) else Path(path).name


@dataclass(frozen=True, slots=True)
class FileState:
    """The size of a file, and when it was changed, if its filesystem knows; of a local one also which it is,
    since another may take its name.
    """

    size: int
    modified: int | None
    inode: int | None = None


def file_state(path: str) -> FileState:
    """The state of a local file or an address.

    Raises
    ------
    UsageError
        if there is none, or it cannot be reached.
    """
    if not is_url(path):
        try:
            state = os.stat(path)
        except OSError:
            rule = (FilePath(path), " does not exist, or is a folder")
            raise UsageError(rule=rule, remedy="check the path") from None
        return FileState(state.st_size, state.st_mtime_ns, state.st_ino)
    files, inner = _filesystem(path)
    info = _quietly(path, lambda: files.get_file_info(inner))
    if not info.is_file or info.size is None:
        raise UsageError(rule=(FilePath(shown_path(path)), " does not exist"), remedy="check the address")
    return FileState(int(info.size), info.mtime_ns)


def expanded(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """All files that paths name; a path or an address may have the wildcards ``*``, ``?`` and ``[…]``, which
    do not match a slash. A local file whose own name has them is itself.

    Raises
    ------
    UsageError
        if wildcards match no file.
    """
    found: list[str] = []
    for path in paths:
        each = os.fspath(path)
        # The query of an address is not a pattern.
        if is_url(each) and _WILDCARDS.search(shown_path(each)):
            found += _matching(each)
        elif not is_url(each) and _WILDCARDS.search(each) and not os.path.lexists(each):
            files = sorted(name for name in glob.glob(each) if os.path.isfile(name))
            if not files:
                raise UsageError(rule=(FilePath(each), " must match a file"), got="none", remedy="check it")
            found += files
        else:
            found.append(each)
    return found


def _matching(url: str) -> list[str]:
    files, inner = _filesystem(url)
    scheme = url.split("://", 1)[0]
    parts = inner.split("/")
    first = next(i for i, part in enumerate(parts) if _WILDCARDS.search(part))
    base = "/".join(parts[:first])
    if not base:
        raise UsageError(
            rule=(FilePath(shown_path(url)), " must name a bucket or folder before its first wildcard"),
            remedy="name it",
        )
    selector = arrow.pyarrow("fs").FileSelector(base, recursive=True, allow_not_found=True)
    names = sorted(
        info.path
        for info in _quietly(url, lambda: files.get_file_info(selector))
        if info.is_file and _fits(info.path.split("/"), parts)
    )
    if not 1 <= len(names) <= MOST_FILES:
        raise UsageError(
            rule=(FilePath(shown_path(url)), f" must match from 1 to {MOST_FILES} files"),
            got="none" if not names else "more",
            remedy="check the address",
        )
    return [f"{scheme}://{name}" for name in names]


def _fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    return len(path) == len(pattern) and all(
        fnmatch.fnmatchcase(part, each) for part, each in zip(path, pattern, strict=True)
    )


class LocalCopy:
    """A temporary file with what was fetched of an address; the rest of it is a hole.

    It is readable by this user only, and deleted by :meth:`close`.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        state = file_state(url)
        self.size = state.size
        files, inner = _filesystem(url)
        self._remote = _quietly(url, lambda: files.open_input_file(inner))
        self._folder = tempfile.mkdtemp(prefix="hushsum-")
        self.path = Path(self._folder) / file_name(url)
        with self.path.open("wb") as file:
            file.truncate(self.size)

    def fetch(self, start: int, end: int) -> None:
        """Copy the bytes from ``start`` to ``end``, as far as the file goes.

        Raises
        ------
        DataRefused
            if the other side returns fewer.
        """
        start, end = max(0, start), min(end, self.size)
        with self.path.open("r+b") as file:
            file.seek(start)
            while start < end:
                wanted = min(_PIECE, end - start)
                place = start
                data = _quietly(self._url, lambda: self._remote.read_at(wanted, place))  # noqa: B023
                if not data or len(data) > wanted:
                    raise DataRefused(
                        rule=(FilePath(shown_path(self._url)), " ended before its stated size"),
                        remedy="try again",
                    )
                file.write(data)
                start += len(data)

    def fetch_all(self) -> None:
        """Copy the whole file."""
        self.fetch(0, self.size)

    def fetch_footer(self) -> None:
        """Copy the end of a Parquet file, which says where its row groups are."""
        self.fetch(self.size - _TAIL, self.size)
        if self.size < _FOOTER.size:
            return
        with self.path.open("rb") as file:
            file.seek(self.size - _FOOTER.size)
            length, magic = _FOOTER.unpack(file.read(_FOOTER.size))
        # A file that is not Parquet is refused by the reader.
        if magic == b"PAR1" and length + _FOOTER.size > _TAIL:
            self.fetch(self.size - _FOOTER.size - length, self.size - _TAIL)

    def close(self) -> None:
        """Delete the copy."""
        self._remote.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _filesystem(url: str) -> tuple[Any, str]:
    """A filesystem of Arrow, and the path in it."""
    fs = arrow.pyarrow("fs")
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme in _ARROW_SCHEMES and (parts.username is not None or parts.password is not None):
        raise UsageError(
            rule=(FilePath(shown_path(url)), " must be given without credentials"),
            remedy="set them in the environment",
        )
    if scheme == "s3":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return _quietly(url, lambda: fs.S3FileSystem(endpoint_override=endpoint)), _inner(url)
    if scheme in _ARROW_SCHEMES:
        return _quietly(url, fs.GcsFileSystem), _inner(url)
    try:
        import fsspec
    except ModuleNotFoundError:
        raise UsageError(
            rule=f"addresses of {scheme} need the package fsspec", remedy="install hushsum[remote]"
        ) from None
    known = _quietly(url, lambda: fsspec.filesystem(scheme))
    return fs.PyFileSystem(fs.FSSpecHandler(known)), url if scheme in ("http", "https") else _inner(url)


def _inner(url: str) -> str:
    return url.split("://", 1)[1]


def _quietly(url: str, call: Any) -> Any:
    """The result of a call to a filesystem, whose messages may quote credentials."""
    failed: type[Exception] | None = None
    try:
        return call()
    except Exception as error:
        failed = type(error)
    raise UsageError(
        rule=(FilePath(shown_path(url)), f" could not be read: {failed.__name__}"),
        remedy="check the address, the network, and the credentials in the environment",
    )
