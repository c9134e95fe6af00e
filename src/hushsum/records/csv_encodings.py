"""The bytes of a CSV file in another encoding, as UTF-8."""

from __future__ import annotations

import codecs
from typing import Any, Final

_BLOCK: Final = 1 << 16


class TextInUtf8:
    """Bytes of a file in another encoding, as UTF-8.

    Arrow has such a stream too, which keeps its buffers where bytes cannot be decoded.

    Examples
    --------
    >>> import io
    >>> text = TextInUtf8(io.BytesIO("größe;1".encode("windows-1252")), "windows-1252")
    >>> text.read(3), text.read()
    (b'gr\\xc3', b'\\xb6\\xc3\\x9fe;1')
    """

    def __init__(self, source: Any, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as many as requested unless the file ends.

        Raises
        ------
        UnicodeError
            if bytes are not of the encoding.
        """
        parts = [self._ready]
        length = len(self._ready)
        while not self._ended and (size < 0 or length < size):
            piece = bytes(self._source.read(_BLOCK))
            self._ended = not piece
            parts.append(self._decoder.decode(piece, final=self._ended).encode())
            length += len(parts[-1])
        found = b"".join(parts)
        end = len(found) if size < 0 else size
        self._ready = found[end:]
        return found[:end]
