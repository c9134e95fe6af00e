"""Files of edges, read in blocks: pairs of node ids as 64-bit integers."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, FilePath, UsageError
from hushsum.records import arrow
from hushsum.records.columnar_files import ColumnarSource
from hushsum.records.columns_by_name import choose_columns
from hushsum.records.csv_files import CsvSource
from hushsum.records.remote_files import LocalCopy, file_name, is_url, shown_path

Ids = NDArray[np.int64]

COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}
_BLOCK: Final = 1 << 24
_COMMENTS: Final = re.compile(rb"(?m)^[ \t]*[#%][^\n]*\n?")
_SPACES: Final = re.compile(rb"[\t\r]*\n\t*|\t+")
_INTEGER: Final = r"0|-?[1-9][0-9]{0,18}"
_OTHER_NUMERAL: Final = re.compile(rb"(?:\A|[\t\n])(?:-0|0[^\t\n])")
"""Fields such as 017, -0 and 0x1F, which a parser of integers reads as numbers, and which are names here."""

_FORMATS: Final = {
    ".csv": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".txt": "text",
    ".tsv": "text",
    ".edges": "text",
}


def node_number(name: int | str) -> int:
    """The 64-bit integer that stands for a node: an integer for itself, also where it is written as text; of
    any other text the first 8 bytes of its BLAKE2b digest.

    >>> node_number("17"), node_number("017") == node_number(17)
    (17, False)
    """
    if isinstance(name, str):
        if re.fullmatch(_INTEGER, name) is None or not -(2**63) <= int(name) < 2**63:
            digest = blake2b(name.encode(), digest_size=8, person=b"hushsum-node").digest()
            return int.from_bytes(digest, "little", signed=True)
        return int(name)
    if isinstance(name, bool) or not -(2**63) <= int(name) < 2**63:
        raise DataRefused(rule="a node id must be text or an integer that fits int64", got="another")
    return int(name)


def read_pairs(
    path: str, columns: Sequence[str] | None, progress: Callable[[float], None] | None = None
) -> Generator[tuple[Ids, Ids], None, None]:
    """The two ends of each edge, some edges at a time, in the order of the file.

    ``columns`` are the names of two columns, or, in text files, their positions from 1; by default the first
    two. ``progress`` is called with the fraction of the file that has been read, before edges are returned.

    Raises
    ------
    UsageError
        No such file, a suffix without a reader, or a column that is not there.
    DataRefused
        The file cannot be read as its name suggests, or an id is missing or neither integer nor text.
    """
    report = progress or (lambda _: None)
    name = file_name(path).lower()
    packed = next((suffix for suffix in COMPRESSIONS if name.endswith(suffix)), "")
    kind = _FORMATS.get(Path(name.removesuffix(packed)).suffix)
    if kind is None or (packed and kind not in ("CSV", "text")):
        known = ", ".join((*_FORMATS, *(f".txt{each}" for each in COMPRESSIONS)))
        rule = (FilePath(shown_path(path)), f" must end in one of {known}")
        raise UsageError(rule=rule, remedy="rename or convert it")
    if is_url(path):
        with closing(LocalCopy(path)) as copy:
            copy.fetch_all()
            yield from _local_pairs(copy.path, shown_path(path), columns, kind, packed, report)
        return
    file = Path(path)
    if not file.is_file():
        raise UsageError(rule=(FilePath(path), " does not exist, or is a folder"), remedy="check the path")
    yield from _local_pairs(file, path, columns, kind, packed, report)


def _local_pairs(
    file: Path,
    path: str,
    columns: Sequence[str] | None,
    kind: str,
    packed: str,
    report: Callable[[float], None],
) -> Iterator[tuple[Ids, Ids]]:
    """The same of a file on this machine, which messages call ``path``."""
    if kind == "text":
        yield from _text_pairs(file, path, columns, COMPRESSIONS.get(packed), report)
        return
    source: CsvSource | ColumnarSource
    if kind == "CSV":
        source = CsvSource.of_file(file, path, _BLOCK)
    else:
        source = ColumnarSource(file, path, kind, _BLOCK)
    with closing(source):
        chosen = list(source.column_names[:2] if columns is None else columns)
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise UsageError(rule=(FilePath(path), " must have two columns of node ids"), remedy="name them")
        choose_columns(source.column_names, chosen)
        source.choose_ids(chosen)
        for batch in source.batches():
            report(source.progress or 0.0)
            yield numbers_of(batch.column(chosen[0])), numbers_of(batch.column(chosen[1]))


def numbers_of(column: Any) -> Ids:
    """The number of every node of an Arrow column of integers or text, as `node_number` defines it."""
    pa, compute = arrow.pyarrow(), arrow.pyarrow("compute")
    if column.null_count:
        raise DataRefused(rule="every edge must have two node ids", got="a missing one", remedy="drop it")
    if pa.types.is_dictionary(column.type):
        return _taken(numbers_of(column.dictionary), column)
    if pa.types.is_integer(column.type):
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype == np.uint64 and values.size and int(values.max()) >= 2**63:
            raise DataRefused(rule="a node id must fit int64", got="one beyond it", remedy="write it as text")
        return np.asarray(values, np.int64)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise DataRefused(rule="node ids must be integers or text", got=column.type, remedy="convert them")
    if compute.all(compute.match_substring_regex(column, f"^({_INTEGER})$")).as_py() is not False:
        try:
            return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)
        except pa.ArrowInvalid:
            pass  # an integer beyond 64 bits is a name
    distinct = column.dictionary_encode()
    numbers = np.array([node_number(each) for each in distinct.dictionary.to_pylist()], np.int64)
    return _taken(numbers, distinct)


def _taken(numbers: Ids, encoded: Any) -> Ids:
    """The numbers of a dictionary at the indices of a column."""
    indices: NDArray[np.int64] = encoded.indices.to_numpy(zero_copy_only=False)
    return numbers[indices]


def _text_pairs(
    file: Path,
    name: str,
    columns: Sequence[str] | None,
    compression: str | None,
    report: Callable[[float], None],
) -> Iterator[tuple[Ids, Ids]]:
    """Edges of a text file as SNAP publishes them: ids separated by spaces or tabs, comments after # or %."""
    try:
        first, second = (int(each) - 1 for each in columns or ("1", "2"))
    except ValueError:
        first = second = -1
    if min(first, second) < 0 or first == second:
        rule = "must be the positions of two columns in a text file, such as 1,2"
        raise UsageError(parameter="edges", rule=rule, got="something else")
    with file.open("rb") as raw:
        size = file.stat().st_size
        stream = arrow.pyarrow().input_stream(raw, compression=compression) if compression else raw
        # No compressed file is empty: of such a one everything was lost.
        if compression and not size:
            raise _damaged(name)
        damaged = _damaged if compression else _unreadable
        for number, block in enumerate(_lines(stream, name, damaged)):
            marked = block.removeprefix(codecs.BOM_UTF8) if number == 0 else block
            pairs = _parsed(marked, name, (first, second))
            if pairs is not None:
                report(min(1.0, raw.tell() / max(size, 1)))
                yield pairs


def _lines(stream: BinaryIO, name: str, damaged: Callable[[str], DataRefused]) -> Iterator[bytes]:
    """Blocks that end with the end of a line; ``damaged`` makes the error of a stream that cannot be read."""
    rest = b""
    while True:
        try:
            block = bytes(stream.read(_BLOCK))
        except (OSError, EOFError, arrow.pyarrow().ArrowException):
            block = None
        # Raised outside the handler: the engine's message may quote data.
        if block is None:
            raise damaged(name)
        if not block:
            break
        end = block.rfind(b"\n") + 1
        if not end and len(rest) > _BLOCK:
            raise _unreadable(name)
        if end:
            yield rest + block[:end]
            rest = b""
        rest += block[end:]
    if rest:
        yield rest + b"\n"


def _parsed(block: bytes, name: str, places: tuple[int, int]) -> tuple[Ids, Ids] | None:
    pa, csv = arrow.pyarrow(), arrow.pyarrow("csv")
    if b"#" in block or b"%" in block:
        block = _COMMENTS.sub(b"", block)
    block = block.replace(b" ", b"\t").replace(b"\r\n", b"\n")
    if any(each in block for each in (b"\t\t", b"\t\n", b"\n\t", b"\r\n")):
        block = _SPACES.sub(lambda found: b"\n" if b"\n" in found[0] else b"\t", block)
    block = block.strip(b"\t\n")
    if not block:
        return None
    fields = block[: block.find(b"\n")].count(b"\t") + 1 if b"\n" in block else block.count(b"\t") + 1
    if max(places) >= fields:
        raise _unreadable(name)
    names = [str(place) for place in range(fields)]
    chosen = [str(place) for place in places]
    # The number of a node must not depend on other lines, nor on where a block begins. So the fast reader of
    # integers takes a block only if it reads every field as node_number does, and an empty line keeps the
    # reader from taking a byte order mark away.
    integers = () if _OTHER_NUMERAL.search(block) else (pa.int64(),)
    for kind in (*integers, pa.string()):
        try:
            table = csv.read_csv(
                io.BytesIO(b"\n" + block),
                read_options=csv.ReadOptions(column_names=names, use_threads=False),
                parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=csv.ConvertOptions(
                    include_columns=chosen, column_types=dict.fromkeys(chosen, kind), null_values=[""]
                ),
            )
        except pa.ArrowInvalid:
            continue
        ends = [table.column(each).combine_chunks() for each in chosen]
        return numbers_of(ends[0]), numbers_of(ends[1])
    raise _unreadable(name)


def _damaged(name: str) -> DataRefused:
    return DataRefused(
        rule=(FilePath(name), " cannot be read as edges: it must be compressed as its name says, and whole"),
        got="something else",
        remedy="copy or download it again",
    )


def _unreadable(name: str) -> DataRefused:
    return DataRefused(
        rule=(FilePath(name), " cannot be read as edges: every line must have the same number of fields"),
        remedy="check what wrote it",
    )
