"""Graphs from files of edges, which are grouped by their first node in bounded memory."""

from __future__ import annotations

import codecs
import io
import os
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, FilePath, UsageError
from hushsum.files import Stored

from ._arrow import Sets, choose_columns, pyarrow, quietly
from ._files import (
    COMPRESSIONS,
    TYPED,
    LocalCopy,
    check_file,
    expanded,
    file_name,
    is_url,
    open_source,
    shown_path,
)

__all__ = ["DEFAULT_MEMORY", "EdgeList", "EdgeProgress", "Graph", "node_number", "read_edges", "read_pairs"]

Ids = NDArray[np.int64]
# Shape (n, 2): a node and one of its neighbours. A node with itself states that the node exists.
Arcs = NDArray[np.int64]

_ARC_BYTES: Final = 16
# Copies of the arcs that are in memory while they are sorted.
_SORTING: Final = 5

_BITS: Final = 6
_PARTS: Final = 1 << _BITS
_LEVELS: Final = 10
_HALF_BITS: Final = np.uint64(32)
_HALF: Final = 1 << 32
_MIXER: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class EdgeProgress:
    """How far a pass over files of edges has come.

    ``read`` is the fraction of their bytes that has been read, None where their size is not known. ``arcs``
    were read, and ``grouped`` of them are in the batches that have been returned.
    """

    read: float | None = 0.0
    arcs: int = 0
    grouped: int = 0

    def fraction(self, reading: float) -> float | None:
        """How much of the work is done if ``reading`` is the part of it that reading the files takes.

        >>> EdgeProgress(read=0.5, arcs=10).fraction(0.5), EdgeProgress(1.0, 10, 5).fraction(0.5)
        (0.25, 0.75)
        """
        if self.read is None:
            return None
        return self.read * (reading + (1.0 - reading) * self.grouped / max(self.arcs, 1))


def _grouped(
    chunks: Iterator[Arcs], most: int, level: int, progress: EdgeProgress
) -> Iterator[tuple[Ids, Sets]]:
    """The nodes and their sets of neighbours, all nodes once, from at most ``most`` arcs at a time.

    Arcs that do not fit are divided by their first node among files without names, which the operating system
    removes with the process, and the parts are sorted one after another.
    """
    held: list[Arcs] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        # A node with more neighbours than fit cannot be divided, and is then sorted all the same.
        if size > most and level < _LEVELS:
            break
    else:
        if size:
            progress.grouped += size
            yield neighbour_sets(np.concatenate(held))
        return
    with ExitStack() as opened:
        parts: dict[int, _Part] = {}

        def divide(chunk: Arcs) -> None:
            for number, arcs in _divided(chunk, level):
                if number not in parts:
                    file = opened.enter_context(tempfile.TemporaryFile(buffering=0))
                    parts[number] = _Part(file, int(arcs[0, 0]))
                parts[number].write(arcs)

        while held:
            divide(held.pop())
        for chunk in chunks:
            divide(chunk)
        for _, part in sorted(parts.items()):
            yield from _grouped(part.read(most), most, level + 1 if part.divisible else _LEVELS, progress)
            part.file.close()


@dataclass(slots=True)
class _Part:
    """A file with the arcs of some nodes; ``divisible`` once there are two of them."""

    file: IO[bytes]
    node: int
    divisible: bool = False

    def write(self, arcs: Arcs) -> None:
        self.divisible = self.divisible or bool(np.any(arcs[:, 0] != self.node))
        data = memoryview(arcs.tobytes())
        # On a disk that is nearly full a write may take a part of it, without an error.
        while data:
            data = data[self.file.write(data) :]

    def read(self, most: int) -> Iterator[Arcs]:
        self.file.seek(0)
        while data := self.file.read(_ARC_BYTES * min(most, 1 << 20)):
            while len(data) % _ARC_BYTES:
                data += self.file.read(_ARC_BYTES - len(data) % _ARC_BYTES)
            yield np.frombuffer(data, np.int64).reshape(-1, 2)


def _divided(chunk: Arcs, level: int) -> Iterator[tuple[int, Arcs]]:
    """The arcs of each part, where the first node of an arc decides its part."""
    mixed = chunk[:, 0].view(np.uint64) * _MIXER
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIXER
    place = (mixed >> np.uint64(64 - _BITS * (level + 1))).astype(np.uint8) % np.uint8(_PARTS)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(_PARTS + 1))
    ordered = chunk[order]
    for number in np.flatnonzero(np.diff(ends)).tolist():
        yield number, ordered[ends[number] : ends[number + 1]]


def neighbour_sets(arcs: Arcs) -> tuple[Ids, Sets]:
    """The nodes in rising order, and the set of each node's neighbours."""
    node, other = _distinct(arcs)
    first = np.ones(len(node), np.bool_)
    first[1:] = node[1:] != node[:-1]
    starts = np.flatnonzero(first)
    members = other != node
    before = np.concatenate(([0], np.cumsum(members, dtype=np.int64)))
    indptr = np.concatenate((before[starts], before[-1:]))
    return node[starts], Sets(other[members], indptr)


def _distinct(arcs: Arcs) -> tuple[Ids, Ids]:
    """The arcs in rising order, each once: their first nodes and their second ones."""
    lows = [int(column.min()) for column in arcs.T]
    if all(int(column.max()) - low < _HALF for column, low in zip(arcs.T, lows, strict=True)):
        # Both ends in one number, which sorts several times faster than two.
        packed = (arcs[:, 0] - lows[0]).view(np.uint64) << _HALF_BITS
        packed |= (arcs[:, 1] - lows[1]).view(np.uint64)
        packed.sort()
        new = np.ones(len(packed), np.bool_)
        np.not_equal(packed[1:], packed[:-1], out=new[1:])
        packed = packed[new]
        node = (packed >> _HALF_BITS).view(np.int64) + lows[0]
        return node, (packed & np.uint64(_HALF - 1)).view(np.int64) + lows[1]
    order = np.lexsort((arcs[:, 1], arcs[:, 0]))
    node, other = arcs[order, 0], arcs[order, 1]
    new = np.ones(len(node), np.bool_)
    new[1:] = (node[1:] != node[:-1]) | (other[1:] != other[:-1])
    return node[new], other[new]


def _grouped_in_order(
    chunks: Iterable[Arcs], most: int, progress: EdgeProgress
) -> Iterator[tuple[Ids, Sets]]:
    """The same for arcs that are in rising order of their first node, without dividing them."""
    held: list[Arcs] = []
    size, last = 0, np.iinfo(np.int64).min
    for chunk in chunks:
        nodes = chunk[:, 0]
        if np.any(nodes[1:] < nodes[:-1]) or (len(nodes) and nodes[0] < last):
            raise DataRefused(
                "edges must be in rising order of their first node to be read as sorted",
                got="another order",
                remedy="leave sorted out",
            )
        held.append(chunk)
        size += len(chunk)
        last = int(nodes[-1]) if len(nodes) else last
        if size < most:
            continue
        arcs = np.concatenate(held)
        # The last node may continue in the next chunk.
        end = int(np.searchsorted(arcs[:, 0], last))
        if end:
            progress.grouped += end
            yield neighbour_sets(arcs[:end])
            held, size = [arcs[end:]], len(arcs) - end
    if size:
        progress.grouped += size
        yield neighbour_sets(np.concatenate(held))


MOST_NODES: Final = 1 << 40
_NODES_AT_A_TIME: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class Graph(Stored):
    """How edges become adjacency rows. A claim about edges depends on all three fields.

    Parameters
    ----------
    directed : bool
        The neighbours of a node are those that its edges lead to; else each end of an edge is a neighbour of
        the other.
    nodes : int, optional
        The declared number of nodes, which are numbered from 0. Each is a record, also without edges. Without
        it the records are the nodes that edges name.
    rows_listed : bool
        The files list the rows: an edge makes only its first end a record, and an undirected edge is listed
        in both directions.
    """

    directed: bool = False
    nodes: int | None = None
    rows_listed: bool = False

    def __post_init__(self) -> None:
        if self.nodes is not None and not 1 <= self.nodes <= MOST_NODES:
            raise UsageError("nodes", f"must be from 1 to {MOST_NODES}", got=self.nodes)
        if self.rows_listed and self.nodes is not None:
            raise UsageError(
                "nodes", "must be left out for sorted edges: their first ends are the records", got="both"
            )

    def __str__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        if self.nodes is not None:
            return f"{kind}, {self.nodes} declared nodes"
        return f"{kind}, nodes as listed" if self.rows_listed else f"{kind}, nodes of its edges"

    def arcs(self, pairs: Iterable[tuple[Ids, Ids]]) -> Iterator[Arcs]:
        """Arcs from a node to its neighbour, and from each record to itself where it might have none."""
        nodes = self.nodes or 0
        for first, second in pairs:
            for each in (first, second) if nodes else ():
                if len(each) and (int(each.min()) < 0 or int(each.max()) >= nodes):
                    raise DataRefused(
                        "nodes",
                        "must count all nodes, which are numbered from 0",
                        got="an edge with another node",
                        remedy="declare more nodes, or leave it out",
                    )
            yield np.stack((first, second), axis=1)
            if not self.rows_listed:
                yield np.stack((second, second if self.directed else first), axis=1)
        for start in range(0, nodes, _NODES_AT_A_TIME):
            ids = np.arange(start, min(start + _NODES_AT_A_TIME, nodes), dtype=np.int64)
            yield np.stack((ids, ids), axis=1)

    def rows(
        self, arcs: Iterable[Arcs], memory: int, progress: EdgeProgress | None = None
    ) -> Iterator[tuple[Ids, Sets]]:
        """The nodes and their sets of neighbours, all nodes once, using about ``memory`` bytes.

        Raises
        ------
        DataRefused
            if the files list the rows, and arcs are not in rising order of their first node.
        """
        most, passed = max(1, memory // (_SORTING * _ARC_BYTES)), progress or EdgeProgress()
        if self.rows_listed:
            return _grouped_in_order(arcs, most, passed)
        return _grouped(iter(arcs), most, 0, passed)


_BLOCK: Final = 1 << 24
_COMMENTS: Final = re.compile(rb"(?m)^[ \t]*[#%][^\n]*\n?")
_SPACES: Final = re.compile(rb"[\t\r]*\n\t*|\t+")
_INTEGER: Final = r"0|-?[1-9][0-9]{0,18}"
# Fields such as 017, -0 and 0x1F, which a parser of integers reads as numbers, and which are names here.
_OTHER_NUMERAL: Final = re.compile(rb"(?:\A|[\t\n])(?:-0|0[^\t\n])")

_TEXT_FILES: Final = (".txt", ".tsv", ".edges")
_TYPED_FILES: Final = tuple(chain.from_iterable(TYPED.values()))


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
        raise DataRefused("a node id must be text or an integer that fits int64", got="another")
    return int(name)


def read_pairs(path: str, columns: Sequence[str] | None) -> Generator[tuple[Ids, Ids, float], None, None]:
    """The two ends of each edge, some edges at a time, in the order of the file, and the fraction of it that
    has been read.

    ``columns`` are the names of two columns, or, in text files, their positions from 1; by default the first
    two.

    Raises
    ------
    UsageError
        No such file, a suffix without a reader, or a column that is not there.
    DataRefused
        The file cannot be read as its name suggests, or an id is missing or neither integer nor text.
    """
    shown, name = shown_path(path), file_name(path).lower()
    packed = next((each for each in COMPRESSIONS if name.endswith(each)), "")
    suffix = Path(name.removesuffix(packed)).suffix
    if suffix not in (".csv", *_TEXT_FILES, *(() if packed else _TYPED_FILES)):
        known = ", ".join((".csv", *_TYPED_FILES, *_TEXT_FILES, *(f".txt{each}" for each in COMPRESSIONS)))
        raise UsageError((FilePath(shown), f" must end in one of {known}"), remedy="rename or convert it")
    if suffix in _TEXT_FILES:
        yield from _text_pairs(path, shown, columns, COMPRESSIONS.get(packed))
        return
    with closing(open_source(path, shown, _BLOCK)) as source:
        chosen = list(source.column_names[:2] if columns is None else columns)
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise UsageError((FilePath(shown), " must have two columns of node ids"), remedy="name them")
        choose_columns(source.column_names, chosen)
        source.choose(chosen)
        for batch in source.batches():
            first, second = (node_numbers(batch.column(each)) for each in chosen)
            yield first, second, source.progress or 0.0


def node_numbers(column: Any) -> Ids:
    """The number of every node of an Arrow column of integers or text, as `node_number` defines it."""
    pa, compute = pyarrow(), pyarrow("compute")
    if column.null_count:
        raise DataRefused("every edge must have two node ids", got="a missing one", remedy="drop it")
    if pa.types.is_dictionary(column.type):
        return _taken(node_numbers(column.dictionary), column)
    if pa.types.is_integer(column.type):
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype == np.uint64 and values.size and int(values.max()) >= 2**63:
            raise DataRefused("a node id must fit int64", got="one beyond it", remedy="write it as text")
        return np.asarray(values, np.int64)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise DataRefused("node ids must be integers or text", got=column.type, remedy="convert them")
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
    path: str, name: str, columns: Sequence[str] | None, compression: str | None
) -> Iterator[tuple[Ids, Ids, float]]:
    """Edges of a text file as SNAP publishes them: ids separated by spaces or tabs, comments after # or %."""
    try:
        first, second = (int(each) - 1 for each in columns or ("1", "2"))
    except ValueError:
        first = second = -1
    if min(first, second) < 0 or first == second:
        rule = "must be the positions of two columns in a text file, such as 1,2"
        raise UsageError("edges", rule, got="something else")
    with ExitStack() as opened:
        file = Path(path)
        if is_url(path):
            copy = opened.enter_context(closing(LocalCopy(path)))
            copy.fetch(0, copy.size)
            file = copy.path
        check_file(file, name)
        raw = opened.enter_context(file.open("rb"))
        size = file.stat().st_size
        stream = pyarrow().input_stream(raw, compression=compression) if compression else raw
        # No compressed file is empty: of such a one everything was lost.
        if compression and not size:
            raise _unreadable(name, compressed=True)
        for number, block in enumerate(_lines(stream, name, compressed=compression is not None)):
            marked = block.removeprefix(codecs.BOM_UTF8) if number == 0 else block
            pairs = _parsed(marked, name, (first, second))
            if pairs is not None:
                yield *pairs, min(1.0, raw.tell() / max(size, 1))


def _lines(stream: BinaryIO, name: str, *, compressed: bool) -> Iterator[bytes]:
    """Blocks that end with the end of a line."""
    rest = b""
    while True:
        block = bytes(
            quietly(
                lambda: stream.read(_BLOCK),
                lambda _: _unreadable(name, compressed=compressed),
                (OSError, EOFError, pyarrow().ArrowException),
            )
        )
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
    pa, csv = pyarrow(), pyarrow("csv")
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
        return node_numbers(ends[0]), node_numbers(ends[1])
    raise _unreadable(name)


def _unreadable(name: str, *, compressed: bool = False) -> DataRefused:
    rule, remedy = "every line must have the same number of fields", "check what wrote it"
    if compressed:
        rule, remedy = "it must be compressed as its name says, and whole", "copy or download it again"
    return DataRefused((FilePath(name), f" cannot be read as edges: {rule}"), remedy=remedy)


DEFAULT_MEMORY: Final = 1 << 30
_LEAST_MEMORY: Final = 1 << 20


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class EdgeList:
    """The edges of files, to be iterated as batches of nodes: one set of neighbours per node.

    Made by :func:`hushsum.records.read_edges`, which describes it. Iterating reads the files anew.
    """

    paths: tuple[str, ...]
    columns: Sequence[str] | None
    graph: Graph
    memory: int

    def __repr__(self) -> str:
        return f"<EdgeList {self.graph}>"

    def __iter__(self) -> Iterator[Sets]:
        for _, sets in self.with_ids():
            yield sets

    def with_ids(
        self, progress: EdgeProgress | None = None, report: Callable[[], None] | None = None
    ) -> Iterator[tuple[Ids, Sets]]:
        """Batches of nodes: their ids as 64-bit integers, and their sets of neighbours.

        ``progress`` is kept up to date, and ``report`` called while the files are read; what it raises ends
        that.
        """
        empty = True
        passed = progress or EdgeProgress()
        for ids, sets in self.graph.rows(self._arcs(passed, report), self.memory, passed):
            empty = False
            yield ids, sets
        if empty:
            raise DataRefused("the files must have at least one edge", got="none")

    def neighbours(self, nodes: Sequence[int | str]) -> list[NDArray[np.int64]]:
        """The sets of neighbours of some nodes, in one pass over the files and without sorting them.

        A node that no edge has, and that is not declared, has no neighbours.
        """
        wanted = [node_number(node) for node in nodes]
        found: dict[int, list[Ids]] = {number: [] for number in wanted}
        listed = np.array(sorted(found), np.int64)
        for arcs in self._arcs(EdgeProgress()):
            for node, other in arcs[np.isin(arcs[:, 0], listed)]:
                found[int(node)].append(other)
        sets = {node: np.unique(np.array(others, np.int64)) for node, others in found.items()}
        return [sets[number][sets[number] != number] for number in wanted]

    def _arcs(self, progress: EdgeProgress, report: Callable[[], None] | None = None) -> Iterator[Arcs]:
        for arcs in self.graph.arcs(self._pairs(progress)):
            progress.arcs += len(arcs)
            yield arcs
            if report is not None:
                report()

    def _pairs(self, progress: EdgeProgress) -> Iterator[tuple[Ids, Ids]]:
        local = all(os.path.isfile(path) for path in self.paths)
        sizes = [os.path.getsize(path) if local else 0 for path in self.paths]
        for number, path in enumerate(self.paths):
            for first, second, fraction in read_pairs(path, self.columns):
                done = sum(sizes[:number]) + fraction * sizes[number]
                progress.read = done / max(sum(sizes), 1) if local else None
                yield first, second
        progress.read = 1.0 if local else None


def read_edges(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    directed: bool = False,
    nodes: int | None = None,
    sorted: bool = False,
    memory: int = DEFAULT_MEMORY,
) -> EdgeList:
    """The nodes of a graph as sets of neighbours, from files of edges of any size.

    :func:`hushsum.methods.count_graph` counts them. Iterating over the result yields the sets in batches.

    Parameters
    ----------
    paths : path or sequence of paths
        Parquet or Arrow files; CSV with a header; text files as SNAP publishes them (.txt, .tsv, .edges): ids
        separated by spaces or tabs, with comments after ``#`` or ``%``. CSV and text may end in .gz or .zst.
        All files together are one graph. Addresses such as ``s3://bucket/part-*.parquet`` are copied to
        temporary files.
    columns : two str, optional
        The columns of the two ends; in text files their positions, from 1. Default: the first two.
    directed : bool
        The neighbours of a node are then those that its edges lead to.
    nodes : int, optional
        All nodes are numbered from 0 to ``nodes − 1``, and each is a record, also without any edge. By
        default the records are the nodes that occur in an edge.
    sorted : bool
        The files list each node's neighbours together, in rising order of the node's id; an undirected edge
        is listed in both directions. They are read without temporary files. A node that is not listed first
        in an edge is then not a record.
    memory : int
        About how many bytes may be used. Larger graphs are divided into temporary files that have no name and
        are readable by this process only.

    Notes
    -----
    An id is an integer that fits 64 bits, or text; text that writes such an integer is that integer, so that
    CSV and Parquet name the same nodes. Other text is represented by 64 bits of its BLAKE2b digest: two of n
    names coincide with probability n²·2⁻⁶⁵. Duplicate edges count once. A self-loop makes its node a record,
    and is not a neighbour.

    Privacy
    -------
    ``directed``, ``nodes`` and ``sorted`` decide how many rows one edge changes, so they are part of the
    tally that :func:`hushsum.methods.count_graph` makes. Sets that are iterated over and added to another
    tally are ordinary records, and nothing can be claimed about edges.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("friends.txt").write_text("# a comment\\n0 1\\n1 2\\n2 2\\n1 0\\n")
    >>> [(ids.tolist(), sets.values.tolist()) for ids, sets in read_edges("friends.txt").with_ids()]
    [([0, 1, 2], [1, 0, 2, 1])]
    """
    listed = expanded([paths] if isinstance(paths, str | os.PathLike) else paths)
    if not listed:
        raise UsageError("paths", "must be at least one file", got="none")
    if columns is not None and len(columns) != 2:
        raise UsageError("columns", "must be the two ends of an edge", got=len(columns))
    if memory < _LEAST_MEMORY:
        raise UsageError("memory", f"must be at least {_LEAST_MEMORY} bytes", got=memory)
    graph = Graph(directed=directed, nodes=nodes, rows_listed=sorted)
    return EdgeList(tuple(listed), columns, graph, memory)
