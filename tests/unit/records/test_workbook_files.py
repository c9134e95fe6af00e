"""Excel workbooks: cells by their own types, one sheet at a time, and hostile archives refused."""

from __future__ import annotations

import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hushsum.errors import DataRefused, UsageError
from hushsum.records import CellFormat, open_batches
from hushsum.records._decoder_worker import Refused, check_archive

openpyxl: Any = import_module("openpyxl")


def book(path: Path, rows: list[list[Any]], sheet: str = "pay") -> Path:
    made = openpyxl.Workbook()
    made.active.title = sheet
    for row in rows:
        made.active.append(row)
    made.create_sheet("other").append(["a", "z"])
    made.save(path)
    return path


def read(path: Path, columns: list[str] | None = None, **cells: Any) -> list[dict[str, Any]]:
    with open_batches(path, columns=columns, cells=CellFormat(**cells)) as stream:
        return [row for batch, _ in stream for row in batch.to_pylist()]


def test_numbers_and_numbers_written_as_text(tmp_path: Path) -> None:
    path = book(tmp_path / "x.xlsx", [["a", "b"], [1, "$1,200.50"], [2.5, "(7)"], [None, None], [3, 0.1]])
    assert read(path) == [{"a": 1.0, "b": 1200.5}, {"a": 2.5, "b": -7.0}, {"a": 3.0, "b": 0.1}]
    path = book(tmp_path / "y.xlsx", [["a"], ["1.234,5 €"], [1.5]])
    assert read(path, decimal=",") == [{"a": 1234.5}, {"a": 1.5}]


def test_missing_cells_ids_and_sheets(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["id", "a"], [5, 1], ["p", None], [7.5, 3]]
    path = book(tmp_path / "x.xlsx", rows)
    with open_batches(path, columns=["a"], unit_column="id", cells=CellFormat(drop_missing=True)) as stream:
        ((batch, units),) = list(stream)
    assert batch.to_pylist() == [{"a": 1.0}, {"a": 3.0}]
    assert units.to_pylist() == ["5", "7.5"]
    with pytest.raises(UsageError, match=r"sheet must .* got 'none such'; the sheets are 'pay', 'other'"):
        read(path, sheet="none such")
    with pytest.raises(DataRefused, match="at least one record"):
        read(path, sheet="other", columns=["a"])


def test_many_sheets_are_not_all_listed(tmp_path: Path) -> None:
    path = book(tmp_path / "x.xlsx", [["a"], [1]])
    made = openpyxl.load_workbook(path)
    for number in range(150):
        made.create_sheet(f"s{number}")
    made.save(path)
    with pytest.raises(UsageError, match=r"'pay', 'other', 's0', .*'s9', …$"):
        read(path, sheet="none such")
    (tmp_path / "y.xlsx").write_bytes(b"PK no workbook")
    with pytest.raises(DataRefused, match="cannot be read as Excel"):
        read(tmp_path / "y.xlsx", sheet="pay")


def test_an_empty_row_of_one_column_is_a_record_without_a_value(tmp_path: Path) -> None:
    path = book(tmp_path / "x.xlsx", [["a"], [1], [None], [2], [None]])
    assert read(path, drop_missing=True) == [{"a": 1.0}, {"a": 2.0}]
    with pytest.raises(DataRefused, match=r"missing values \(first in row 3\)"):
        read(path)
    assert read(path, drop_missing=True) == [{"a": 1.0}, {"a": 2.0}]
    assert read(book(tmp_path / "y.xlsx", [["a"], [1], [2], [None], [None]])) == [{"a": 1.0}, {"a": 2.0}]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [("words", "text"), (True, "text"), ("NA", "missing values"), (pd.Timestamp(0), "dates")],
)
def test_other_cells_are_refused_by_their_kind(cell: Any, kind: str, tmp_path: Path) -> None:
    path = book(tmp_path / "x.xlsx", [["a"], [1], [cell]])
    with pytest.raises(DataRefused, match=f"column 'a' .* got {kind}") as refused:
        read(path)
    assert "words" not in str(refused.value)


@pytest.mark.parametrize("id", [2.0**53, -(2.0**53), 1e19, 3e19])
def test_ids_that_a_workbook_rounds_are_refused(id: float, tmp_path: Path) -> None:
    """Two persons would be one."""
    path = book(tmp_path / "a.xlsx", [["id", "a"], [5, 1], [id, 2]])
    with (
        open_batches(path, columns=["a"], unit_column="id") as stream,
        pytest.raises(DataRefused, match="text"),
    ):
        list(stream)
    path = book(tmp_path / "b.xlsx", [["id", "a"], [2.0**53 - 1, 1], ["9007199254740993", 2]])
    with open_batches(path, columns=["a"], unit_column="id") as stream:
        ((_, units),) = stream
    assert units.to_pylist() == ["9007199254740991", "9007199254740993"]


def test_a_large_sheet_comes_in_batches(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(5000, 2)).round(3)
    pd.DataFrame(values, columns=["a", "b"]).to_excel(tmp_path / "x.xlsx", index=False)
    with open_batches(tmp_path / "x.xlsx", batch_bytes=1 << 16) as stream:
        batches = [batch for batch, _ in stream]
    assert len(batches) > 3
    np.testing.assert_array_equal(np.vstack([np.column_stack(each.columns) for each in batches]), values)


def changed(path: Path, name: str, content: bytes) -> Path:
    """A copy of a workbook with another part."""
    copy = path.with_name("changed.xlsx")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            new.writestr(part, content if part == name else old.read(part))
    return copy


class TestHostileWorkbooks:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return book(tmp_path / "x.xlsx", [["a"], [1]])

    def test_a_bomb(self, path: Path) -> None:
        sheet = b"<worksheet><sheetData>" + b" " * (150 << 20) + b"</sheetData></worksheet>"
        with pytest.raises(DataRefused, match="cannot be read as Excel"):
            read(changed(path, "xl/worksheets/sheet1.xml", sheet))

    @pytest.mark.parametrize("padding", [0, 1 << 20])
    def test_entities(self, path: Path, padding: int) -> None:
        laughs = (
            b'<?xml version="1.0"?>'
            + b" " * padding
            + b'<!DOCTYPE w [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
            b"<sst><si><t>&a;</t></si></sst>"
        )
        bad = changed(path, "xl/workbook.xml", laughs)
        with pytest.raises(Refused):
            check_archive(str(bad))
        with pytest.raises(DataRefused, match="cannot be read as Excel"):
            read(bad)

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"<html>"])
    def test_files_that_are_none(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "x.xlsx").write_bytes(content)
        with pytest.raises(DataRefused, match="cannot be read as Excel"):
            read(tmp_path / "x.xlsx")

    def test_a_stated_size_is_not_believed(self, path: Path) -> None:
        sheet = (
            b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
            b'<dimension ref="A1:XFD1048576"/><sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is>'
            b'</c></row><row r="2"><c r="A2"><v>5</v></c></row></sheetData></worksheet>'
        )
        assert read(changed(path, "xl/worksheets/sheet1.xml", sheet)) == [{"a": 5.0}]

    def test_a_sheet_without_a_header_shows_no_record(self, tmp_path: Path) -> None:
        with pytest.raises(DataRefused, match="must name the columns") as refused:
            read(book(tmp_path / "y.xlsx", [[51234, "Ann"], [61234, "Bob"]]))
        assert "51234" not in str(refused.value)

    def test_blanks_around_names_are_left_out(self, tmp_path: Path) -> None:
        assert read(book(tmp_path / "y.xlsx", [["a ", " b"], [1, 2]])) == [{"a": 1.0, "b": 2.0}]

    def test_sets_and_repeated_names_are_refused(self, tmp_path: Path, path: Path) -> None:
        with pytest.raises(UsageError, match="distinct names"):
            read(book(tmp_path / "y.xlsx", [["a", "a"], [1, 2]]))
        with pytest.raises(UsageError, match="set_column"):
            open_batches(path, set_column="a")
