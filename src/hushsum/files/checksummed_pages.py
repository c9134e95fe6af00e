"""The paged part of a container: bytes that are checked page by page, when they are used.

A file with a large table is opened without reading all of it. So the bytes of the table are cut into pages of
4096 bytes, each with a SHA-256 of its own, and the checksum of the file covers these digests instead of the
pages. A page is compared with its digest before anything in it is used for the first time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from hushsum.errors import FileRefused

PAGE = 4096
DIGEST = hashlib.sha256().digest_size


def digests_size(paged: int) -> int:
    """How many bytes the digests of so many bytes in pages take."""
    return -(-paged // PAGE) * DIGEST


def whole_pages(parts: Iterable[bytes | bytearray | memoryview]) -> Iterator[memoryview]:
    """The same bytes in pieces of whole pages, but for the last."""
    rest = b""
    for part in parts:
        view = memoryview(part).cast("B")
        if rest:
            view = memoryview(rest + bytes(view))
        end = len(view) // PAGE * PAGE
        if end:
            yield view[:end]
        rest = bytes(view[end:])
    if rest:
        yield memoryview(rest)


def page_digests(piece: memoryview) -> bytes:
    """The SHA-256 of each page."""
    return b"".join(
        hashlib.sha256(piece[start : start + PAGE]).digest() for start in range(0, len(piece), PAGE)
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
        found = hashlib.sha256(self._paged[page * PAGE : (page + 1) * PAGE]).digest()
        if found != self._digests[page * DIGEST : (page + 1) * DIGEST]:
            raise FileRefused(
                rule="the file is damaged: a page of its table does not match its checksum",
                remedy="get a fresh copy",
            )
