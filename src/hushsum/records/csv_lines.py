"""The lines of CSV, counted while it is read: every record must be one line."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from hushsum.errors import DataRefused, FilePath


class CountedLines(io.RawIOBase):
    """Bytes that were read already, then those of a file; and how many lines they are so far.

    Parameters
    ----------
    start : bytes
    rest : binary file
    empty : bool
        Whether an empty line is one, too.

    Privacy
    -------
    A quote that is not closed makes a reader of CSV take the lines after it for one cell, up to the next
    quote: one record would remove others, in a column that nobody chose and nobody sees. Cells that contain
    line ends are read or not by where a block of the file ends, which depends on the records before them. So
    a file is refused unless each line is a record (:meth:`check`).

    Examples
    --------
    >>> lines = CountedLines(b"1,a\\n", io.BytesIO(b"\\r\\n2,b\\r\\n3,c"), empty=False)
    >>> lines.read(), lines.read(), lines.lines
    (b'1,a\\n', b'\\r\\n2,b\\r\\n3,c', 3)
    """

    def __init__(self, start: bytes, rest: Any, *, empty: bool) -> None:
        self._start = io.BytesIO(start)
        self._rest = rest
        self._empty = empty
        self._ended = 0
        self._begun = 0
        self._last = b"\n"

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        found = self._start.read(size) or bytes(self._rest.read(size))
        if found:
            self._count(found)
        return found

    @property
    def lines(self) -> int:
        """How many lines have been read."""
        if not self._empty:
            return self._begun
        return self._ended + (self._last not in b"\r\n")

    def check(self, records: int, name: str) -> None:
        """Refuse a file of which another number of records than lines was read.

        Raises
        ------
        DataRefused
            in that case.
        """
        if self.lines != records:
            raise DataRefused(
                rule=(FilePath(name), " must have one line for each record"),
                got="a quote that is not closed, or a line end inside of a cell",
                remedy="close the quotes, write line ends in cells as spaces, or convert the file to Parquet",
            )

    def _count(self, block: bytes) -> None:
        before, self._last = self._last, block[-1:]
        if b"\r" not in block and b"\n\n" not in block and before != b"\r":
            ends = block.count(b"\n")
            self._ended += ends
            self._begun += ends - block.endswith(b"\n") + (before == b"\n" and block[:1] != b"\n")
            return
        codes = np.frombuffer(before + block, np.uint8)
        feed, back = codes == ord("\n"), codes == ord("\r")
        end = feed | back
        self._begun += int(np.count_nonzero(end[:-1] & ~end[1:]))
        # Both together are one end.
        self._ended += int(np.count_nonzero(end[1:])) - int(np.count_nonzero(back[:-1] & feed[1:]))
