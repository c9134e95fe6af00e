"""One record with a quote that is not closed: the lines after it became one cell, their records vanished."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import pytest

from hushsum.errors import DataRefused
from hushsum.operations import mixed_batches
from hushsum.records import NumberColumn, open_source
from hushsum.records._files import CountedLines

LINES = ["1,Ann,1.0", "2,Bob,2.0", "3,Cid,3.0", '4,"Dora",4.0', "5,Eve,5.0"]


def _file(folder: Path, lines: list[str], end: str = "\n") -> Path:
    path = folder / "people.csv"
    path.write_bytes(end.join(["id,name,pay", *lines, ""]).encode())
    return path


def _by_number(path: Path) -> list[Any]:
    source = open_source(path, path.name, 1 << 16)
    try:
        source.choose(["pay"], numbers=["pay"])
        return [value for batch in source.batches() for value in batch.column(0).to_pylist()]
    finally:
        source.close()


def _mixed(path: Path) -> list[Any]:
    tables = mixed_batches(str(path), {"pay": NumberColumn(0, 10)})
    return [value for table, _ in tables for value in table["pay"].to_pylist()]


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("read", [_by_number, _mixed])
def test_one_record_does_not_remove_others(tmp_path: Path, read: Any, end: str) -> None:
    assert read(_file(tmp_path, LINES, end)) == [1.0, 2.0, 3.0, 4.0, 5.0]
    unclosed = [LINES[0], '2,"Bob,2.0', *LINES[2:]]
    with pytest.raises(DataRefused, match="one line for each record") as caught:
        read(_file(tmp_path, unclosed, end))
    assert "Bob" not in str(caught.value)
    with pytest.raises(DataRefused, match="one line for each record"):
        read(_file(tmp_path, [*LINES, '6,"Fay\nGay",6.0'], end))


@pytest.mark.parametrize("read", [_by_number, _mixed])
def test_quotes_inside_of_cells_are_no_line_ends(tmp_path: Path, read: Any) -> None:
    inches = [*LINES, '6,a 6" pipe,6.0', '7,"a 6"" pipe, long",7.0', "", "8,Hal,8.0"]
    assert read(_file(tmp_path, inches)) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


@pytest.mark.parametrize("columns", [1, 2])
def test_lines_are_counted_as_the_reader_of_csv_does(columns: int) -> None:
    """All texts of up to six characters, in blocks of every size."""
    pa, csv = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.csv")
    names = ["a", "b"][:columns]
    compared = 0
    for length in range(1, 7):
        for letters in itertools.product("1,\n\r" if columns == 2 else "1\n\r", repeat=length):
            text = "".join(letters).encode()
            try:
                rows = csv.read_csv(
                    io.BytesIO(text),
                    read_options=csv.ReadOptions(column_names=names, use_threads=False),
                    parse_options=csv.ParseOptions(ignore_empty_lines=columns > 1),
                    convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
                ).num_rows
            except pa.ArrowInvalid:
                continue
            for size in (-1, 1, 2, 3):
                lines = CountedLines(b"", io.BytesIO(text), empty=columns == 1)
                while lines.read(size):
                    pass
                assert lines.lines == rows, (text, size)
                compared += 1
    assert compared > 300
