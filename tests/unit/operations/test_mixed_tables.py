"""Files of mixed columns: what is missing, what is declared, and what is refused."""

from __future__ import annotations

import gzip
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from tests.shown_numbers import shows_number

from hushsum.errors import DataRefused, UsageError
from hushsum.operations import mixed_batches
from hushsum.records import (
    CategoryColumn,
    CellFormat,
    DateColumn,
    DeclaredColumn,
    FlagColumn,
    NumberColumn,
    mixed_columns,
)

openpyxl: Any = import_module("openpyxl")


def test_a_declared_category_is_not_missing(tmp_path: Path) -> None:
    file = tmp_path / "regions.csv"
    file.write_text("region,size\nNA,1\nEU,\n,3\n")
    columns: dict[str, DeclaredColumn] = {
        "region": CategoryColumn(["NA", "EU"]),
        "size": NumberColumn(0, 9, fill=0),
    }
    ((table, _),) = mixed_batches(str(file), columns)
    assert table.column("region").to_pylist() == ["NA", "EU", None]
    assert table.column("size").to_pylist() == [1.0, None, 3.0]


GERMAN = (
    '\ufeff"Lohn, jährlich (€)";Alter;Ort;Vollzeit\r\n'
    "74.337,26 €;50;Köln;1\r\n30.144,60 €;NA;München;false\r\n;42;;\r\n"
)
DECLARED: dict[str, DeclaredColumn] = {
    "Alter": NumberColumn(0, 120, fill=0),
    "Lohn, jährlich (€)": NumberColumn(0, 200_000, fill=0),
    "Ort": CategoryColumn(["Köln", "München"]),
    "Vollzeit": FlagColumn(),
}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_file_from_a_spreadsheet(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"löhne 2025{suffix}"
    file.write_bytes(gzip.compress(GERMAN.encode()) if suffix == ".csv.gz" else GERMAN.encode())
    ((table, _),) = mixed_batches(str(file), DECLARED, cells=CellFormat(decimal=","))
    assert table.to_pydict() == {
        "Alter": [50.0, None, 42.0],
        "Lohn, jährlich (€)": [74337.26, 30144.6, None],
        "Ort": ["Köln", "München", None],
        "Vollzeit": [True, False, None],
    }
    ((complete, _),) = mixed_batches(str(file), DECLARED, cells=CellFormat(decimal=",", drop_missing=True))
    assert complete.num_rows == 1


def test_a_workbook(tmp_path: Path) -> None:
    """Cells with types of their own, and numbers and truth values that are written as text."""
    made = openpyxl.Workbook()
    made.active.title = "2024"
    sheet = made.create_sheet("2025")
    rows: list[list[object]] = [
        ["Vollzeit", "Lohn, jährlich (€)", "Ort", "Alter"],
        [True, 74337.26, "Köln", 50],
        ["false", "30.144,60 €", "München", "NA"],
        [None, None, None, 42],
        [1, 1.5, 7, "50"],
    ]
    for row in rows:
        sheet.append(row)
    made.save(tmp_path / "löhne.xlsx")
    ((table, _),) = mixed_batches(
        str(tmp_path / "löhne.xlsx"), DECLARED, cells=CellFormat(decimal=",", sheet="2025")
    )
    assert table.to_pydict() == {
        "Alter": [50.0, None, 42.0, 50.0],
        "Lohn, jährlich (€)": [74337.26, 30144.6, None, 1.5],
        "Ort": ["Köln", "München", None, "7"],
        "Vollzeit": [True, False, None, True],
    }
    sheet["C3"] = datetime(2024, 5, 31)
    made.save(tmp_path / "löhne.xlsx")
    with pytest.raises(DataRefused, match=r"column 'Ort' of .* numbers, text or truth values, got dates"):
        list(
            mixed_batches(str(tmp_path / "löhne.xlsx"), DECLARED, cells=CellFormat(decimal=",", sheet="2025"))
        )


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".xlsx"])
def test_dates_have_the_same_labels_in_every_file(tmp_path: Path, suffix: str) -> None:
    days, file = [date(2024, 5, 31), None, date(2024, 1, 1)], tmp_path / f"visits{suffix}"
    if suffix == ".csv":
        file.write_text("day,n\n2024-05-31,1\n,2\n 2024-01-01,3\n")
    elif suffix == ".parquet":
        pq.write_table(pa.table({"day": days, "n": [1, 2, 3]}), file)
    else:
        made = openpyxl.Workbook()
        for row in [["day", "n"], *([day, i + 1] for i, day in enumerate(days[:2])), ["2024-01-01", 3]]:
            made.active.append(row)
        made.save(file)
    column = DateColumn("2024-01-01", "2024-12-31", bins=12)
    ((table, _),) = mixed_batches(str(file), {"day": column, "n": NumberColumn(0, 9)})
    (chunks, _) = mixed_columns(table, count=2)
    assert column.codes(chunks, "day").tolist() == [4, 12, 0]


@pytest.mark.parametrize("name", ["none.csv", "none.xlsx", "none.doc", "."])
def test_paths_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"does not exist|must end in one of|must be a file"):
        list(mixed_batches(str(tmp_path / name), DECLARED))


def test_cells_of_another_kind_are_refused_without_being_shown(tmp_path: Path) -> None:
    file = tmp_path / "pay.csv"
    file.write_text(GERMAN, encoding="utf-8")
    with pytest.raises(DataRefused, match=r"got decimal commas \(first in line 2\); give decimal") as refused:
        list(mixed_batches(str(file), DECLARED))
    assert not shows_number(str(refused.value), 74337)
    file.write_text("Vollzeit\nperhaps\n")
    with pytest.raises(DataRefused, match="is declared as a flag: true, false, 1 or 0") as refused:
        list(mixed_batches(str(file), {"Vollzeit": FlagColumn()}))
    assert "perhaps" not in str(refused.value)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_columns_of_every_kind_are_read_in_their_order(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"flag": [True, None], "n": [1, 2], "text": ["a", "b"], "other": ["x", "y"]})
    file = tmp_path / f"mixed{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, file)
    else:
        pa.feather.write_feather(table, file)
    columns: dict[str, DeclaredColumn] = {
        "text": CategoryColumn(["a", "b"]),
        "flag": FlagColumn(),
        "n": NumberColumn(0, 9),
    }
    ((found, _),) = mixed_batches(str(file), columns)
    assert found.to_pydict() == {"text": ["a", "b"], "flag": [True, None], "n": [1, 2]}
    ((complete, _),) = mixed_batches(str(file), columns, cells=CellFormat(drop_missing=True))
    assert complete.num_rows == 1


def test_what_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "visits.parquet"
    pq.write_table(pa.table({"day": [date(2024, 1, 1)], "list": [[1]]}), file)
    for column, kind in (("day", "dates"), ("list", "list")):
        with pytest.raises(DataRefused, match=kind):
            list(mixed_batches(str(file), {column: NumberColumn(0, 9)}))
    with pytest.raises(UsageError, match="finite"):
        NumberColumn(-1.7e308, 1.7e308)
