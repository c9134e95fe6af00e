"""What is uploaded to a service: a file, or a frame as an Arrow file, in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO, TextIOBase
from pathlib import Path
from typing import IO, Any, Final

from hushsum.errors import Argument, UsageError, shown
from hushsum.records.arrow import as_table, is_frame, pyarrow

_FORMATS: Final = {
    ".csv.gz": "csv.gz",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "xlsx",
    ".tally": "tally",
}
_PIECE: Final = 1 << 20


@contextmanager
def opened_source(source: Any) -> Iterator[tuple[IO[bytes], str]]:
    """The bytes to send, and a name whose suffix tells their format, or none."""
    if is_frame(source):
        stream = BytesIO()
        table = as_table(source)
        with pyarrow("ipc").new_file(stream, table.schema) as writer:
            writer.write_table(table)
        stream.seek(0)
        yield stream, ".arrow"
        return
    if isinstance(source, str | Path):
        if not Path(source).exists():
            raise UsageError(
                parameter="source",
                rule="must be an existing file",
                got=f"{str(source)!r}",
                remedy="check the path",
            )
        with open(source, "rb") as file:
            yield file, str(source)
    else:
        if not hasattr(source, "read") or isinstance(source, TextIOBase):
            raise UsageError(
                parameter="source",
                rule="must be the path of a file, a file that was opened in binary mode, or a frame",
                got="a file of text" if isinstance(source, TextIOBase) else shown(source),
                remedy="give the path, or a frame with named columns",
            )
        yield source, str(getattr(source, "name", ""))


def format_of(name: str) -> str:
    """The format of a file, by its suffix."""
    known: Sequence[str] = [format for suffix, format in _FORMATS.items() if name.endswith(suffix)]
    if not known:
        raise UsageError(
            parameter="format",
            rule="must be given for a file without a known suffix",
            remedy=("give ", Argument("format", "csv")),
        )
    return known[0]


def in_pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """A file, a megabyte at a time."""
    while piece := stream.read(_PIECE):
        yield piece
