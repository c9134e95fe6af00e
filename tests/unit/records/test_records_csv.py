"""CSV, which tells no types: what is read from it, and refusals that name the rule and no value."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hushsum.errors import DataRefused, UsageError
from hushsum.records import ENCODINGS, CellFormat, as_dense, as_sets, open_batches

pytest.importorskip("pyarrow")

SECRET = "98765.4321"

BAD_CSV: dict[str, tuple[str, str]] = {
    "text": (f"a,b\n1,2\n3,x{SECRET}\n", "column 'b' of .* must be of numbers"),
    "more fields": (f"a,b\n1,2\n1,2,{SECRET}\n", "as many fields as the header"),
    "fewer fields": (f"a,b\n1,2\n{SECRET}\n", "as many fields as the header"),
    "no header": (f"{SECRET},x\n1,2\n", "must name the columns, got numbers"),
    "an empty line first": (f"\r\na,b\n{SECRET},2\n", "must name the columns, got an empty line"),
    "carriage returns": (f"a,b\r{SECRET},2\r", "must end in a line feed, got carriage returns"),
    "header only": ("a,b\n", "at least one record, got none"),
    "header without end": ("a,b", "at least one record, got none"),
    "blank lines": ("a,b\n\n\n", "at least one record"),
    "empty": ("", "empty file"),
    "white": ("\n \n", "empty file"),
    "long line": (f"a,b\n1,{'9' * 200_000}\n1,2\n", "cannot be read as CSV|must be of numbers"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_csv_refusals_name_the_rule_and_no_value(tmp_path: Path, case: str) -> None:
    text, message = BAD_CSV[case]
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(DataRefused, match=message) as caught:
        list(open_batches(path, batch_bytes=1))
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_fault_in_a_later_block_is_named_too(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,skipped,b\n" + "1,text,2\n" * 50_000 + f"1,text,x{SECRET}\n")
    stream = iter(open_batches(path, columns=["b", "a"]))
    with pytest.raises(DataRefused, match=r"column 'b' of .* must be of numbers") as caught:
        list(stream)
    assert SECRET not in str(caught.value)


def test_missing_fields_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,\n")
    with pytest.raises(DataRefused, match=r"column 'b' of .* got missing values \(first in line 2\)"):
        list(open_batches(tmp_path / "x.csv"))


def test_integers_first_and_fractions_later(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n" + "1\n" * 200_000 + "2.5\n")
    last = [as_dense(batch, dim=1)[-1, 0] for batch, _ in open_batches(tmp_path / "x.csv", batch_bytes=1)]
    assert len(last) > 2
    assert last[-1] == 2.5


def test_headers_with_quotes_marks_and_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b'\xef\xbb\xbf"a, or\nelse",b\r\n1,2\r\n3,4\r\n')
    stream = open_batches(tmp_path / "x.csv")
    assert stream.column_names == ["a, or\nelse", "b"]
    np.testing.assert_array_equal(np.concatenate([as_dense(b, dim=2) for b, _ in stream]), [[1, 2], [3, 4]])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_empty_line_of_one_column_is_a_missing_value(tmp_path: Path, end: str) -> None:
    """Skipped, it would change the number of records, which is public under replace."""
    path = tmp_path / "x.csv"
    path.write_bytes(end.join(["a", "1", "", "2", ""]).encode())
    with pytest.raises(DataRefused, match=r"got missing values \(first in line 3\)"):
        list(open_batches(path))
    ((batch, _),) = open_batches(path, cells=CellFormat(drop_missing=True))
    assert batch.num_rows == 2
    # Line ends that lie across blocks are no empty lines.
    for extra in ("", "1", "11"):
        path.write_bytes(end.join(["a", "1" + extra, *["22"] * 200_000, ""]).encode())
        batches = [batch for batch, _ in open_batches(path, batch_bytes=1)]
        assert len(batches) > 2
        assert sum(batch.num_rows for batch in batches) == 200_001
        assert not any(batch.column(0).null_count for batch in batches)


def test_header_names_must_be_usable(tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    with pytest.raises(UsageError, match="distinct names"):
        open_batches(tmp_path / "twice.csv")
    (tmp_path / "index.csv").write_text(",a\n0,2\n")
    with pytest.raises(UsageError, match="without a name"):
        open_batches(tmp_path / "index.csv")
    ((batch, _),) = open_batches(tmp_path / "index.csv", columns=["a"])
    assert batch.num_rows == 1
    (tmp_path / "latin.csv").write_bytes("é\n1\n".encode("latin-1"))
    with pytest.raises(DataRefused, match="UTF-8"):
        open_batches(tmp_path / "latin.csv")


def test_csv_ids_are_text_and_a_missing_one_is_null(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,u\n1,007\n2,\n3,NA\n")
    ((_, units),) = open_batches(tmp_path / "x.csv", unit_column="u")
    assert units.to_pylist() == ["007", None, "NA"]


def test_csv_sets(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('u,s\np,3 5\nq,\nr, 7 ; 8;9\ns,"-1;;2"\n')
    ((batch, units),) = open_batches(tmp_path / "x.csv", set_column="s", unit_column="u")
    assert batch.column(0).to_pylist() == [[3, 5], [], [7, 8, 9], [-1, 2]]
    assert units.to_pylist() == ["p", "q", "r", "s"]
    assert len(as_sets(batch)) == 4


@pytest.mark.parametrize("field", [SECRET, "a b", "1|2", "98765432198765432198765"])
def test_csv_sets_of_something_else(tmp_path: Path, field: str) -> None:
    (tmp_path / "x.csv").write_text(f"s\n1 2\n{field}\n")
    with pytest.raises(DataRefused, match="column 's' must have integers separated") as caught:
        list(open_batches(tmp_path / "x.csv", set_column="s"))
    assert "98765" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("encoding", ["windows-1252", "latin-1", "UTF-16", "utf-8", "iso-8859-15"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_declared_encoding(tmp_path: Path, encoding: str, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    written = ("größe;ort\n" + "1,5;Köln\n" * 30_000 + "2;Ulm").encode(encoding)
    path.write_bytes(gzip.compress(written) if suffix == ".csv.gz" else written)
    cells = CellFormat(decimal=",", encoding=encoding)
    with open_batches(path, columns=["größe"], unit_column="ort", cells=cells, batch_bytes=1 << 17) as stream:
        batches = list(stream)
    assert sum(batch.num_rows for batch, _ in batches) == 30_001
    assert batches[0][0].column("größe")[0].as_py() == 1.5
    assert batches[0][1][0].as_py() == "Köln"
    assert batches[-1][1][-1].as_py() == "Ulm"


def test_bytes_that_the_declared_encoding_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for start in (b"a\x81,b\n1,2\n", b"a,b\n" + b"1,2\n" * 500_000):
        path.write_bytes(start + b"x98765\x81,2\n")
        with pytest.raises(DataRefused, match="must be text in windows-1252, got other bytes") as refused:
            list(open_batches(path, columns=["b"], cells=CellFormat(encoding="cp1252")))
        assert refused.value.__suppress_context__ or refused.value.__context__ is None
        assert "98765" not in str(refused.value)


@pytest.mark.parametrize("encoding", ["utf-7", "iso-2022-jp", "rot13", "zlib", "klingon", "", "a\0b"])
def test_other_encodings_are_refused(encoding: str) -> None:
    """One with escape sequences lets a record change how later ones are read."""
    with pytest.raises(UsageError, match="encoding must be one of utf-8, utf-16, "):
        CellFormat(encoding=encoding)


@pytest.mark.parametrize("encoding", [each for each in ENCODINGS if each != "utf-16"])
def test_no_record_reaches_beyond_its_line(tmp_path: Path, encoding: str) -> None:
    """Bytes at the end of a line, complete or not, change no other line, or the file is refused. A line of
    UTF-16 is a number of pairs of bytes.
    """
    path = tmp_path / "x.csv"
    for last in range(256):
        path.write_bytes(b"a,b\n1,x" + bytes([last]) + b"\n2,y\n3,z\n")
        try:
            cells = CellFormat(encoding=encoding)
            batches = list(open_batches(path, columns=["a"], cells=cells))
        except DataRefused:
            continue
        assert [each for batch, _ in batches for each in batch.column("a").to_pylist()] == [1, 2, 3]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_header_in_another_encoding_is_told_from_other_faults(
    tmp_path: Path, encoding: str, end: str
) -> None:
    (tmp_path / "x.csv").write_bytes(f"größe,b{end}1,{SECRET}{end}".encode(encoding))
    with pytest.raises(DataRefused, match="encoding"):
        list(open_batches(tmp_path / "x.csv"))


def test_blanks_around_names_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('a , b,"c "\n1, 2,3\n')
    ((batch, _),) = open_batches(tmp_path / "x.csv", columns=["b", "c"])
    assert batch.to_pydict() == {"b": [2.0], "c": [3.0]}
    (tmp_path / "x.csv").write_text("a, a\n1,2\n")
    with pytest.raises(UsageError, match="distinct names"):
        open_batches(tmp_path / "x.csv")
