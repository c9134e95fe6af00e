"""Numbers as they are written in spreadsheets: each cell is read alone, and nothing is guessed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushsum.errors import Argument, DataRefused, UsageError
from hushsum.records import CellFaults, CellFormat, as_numbers, open_batches


def refusal(cells: list[str], decimal: str = ".") -> DataRefused:
    declared = CellFormat(decimal)
    faults = CellFaults("x.csv", declared)
    declared.read(pa.array(cells), "x", faults)
    with pytest.raises(DataRefused) as refused:
        faults.check()
    return refused.value


def read(text: str, decimal: str = ".") -> float | None:
    numbers = as_numbers(pa.array([text]), decimal)
    return None if numbers is None else numbers[0].as_py()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7.0),
        (" -7.25 ", -7.25),
        ("1e3", 1000.0),
        ("$1,234.50", 1234.5),
        ("-$1,234", -1234.0),
        ("1,234,567 €", 1234567.0),
        ("2 500", 2500.0),
        ("2\u00a0500.5", 2500.5),
        ("1'000'000", 1e6),
        ("(12.5)", -12.5),
        ("($1,200)", -1200.0),
        ("1,5", None),
        ("1,2345", None),
        ("0,345", None),
        ("-0,345", None),
        ("0 345", None),
        ("012,345", None),
        ("10,000", 10000.0),
        ("12,34,567", None),
        ("1,234 567", None),
        ("$", None),
        ("5k", None),
        ("(-5)", None),
        ("2024-03-01", None),
        ("12%", None),
        ("", None),
    ],
)
def test_with_a_decimal_point(text: str, number: float | None) -> None:
    assert read(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7.0),
        ("0,5", 0.5),
        ("1.234,50 €", 1234.5),
        ("1.500", 1500.0),
        ("2 500,25", 2500.25),
        ("1.5", None),
        ("0.345", None),
        ("0,345", 0.345),
        ("1,234.5", None),
        ("1,2,3", None),
    ],
)
def test_with_a_decimal_comma(text: str, number: float | None) -> None:
    assert read(text, ",") == number


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_a_plain_number_means_the_same_beside_others(values: list[float]) -> None:
    """The quick way and the careful one agree to the last bit, so that no record changes another."""
    texts = [repr(value) for value in values]
    alone = as_numbers(pa.array(texts))
    beside = as_numbers(pa.array([*texts, "$1,000"]))
    assert alone is not None
    assert beside is not None
    assert alone.to_pylist() == beside.to_pylist()[:-1] == values


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("NA", "missing values"),
        ("2024-03-01", "dates"),
        ("1,5", "decimal commas"),
        ("-2,125E-05", "decimal commas"),
        ("8 %", "percentages"),
    ],
)
def test_other_cells_are_described_by_their_kind(text: str, kind: str) -> None:
    assert refusal(["1", text]).got == f"{kind} (first in row 2)"
    assert refusal(["some words", text]).got in (
        f"{kind} (first in row 2), text (first in row 1)",
        "text (first in row 1)",
    )


@pytest.mark.parametrize("digits", ["5", "50", "345", "3456"])
def test_the_other_decimal_sign_is_described(digits: str) -> None:
    for own, other, kind in ((".", ",", "decimal commas"), (",", ".", "decimal points")):
        found = refusal([f"0{other}{digits}"], own)
        assert (found.got, found.remedy) == (
            f"{kind} (first in row 1)",
            ("give ", Argument("decimal", other)),
        )
        # Groups of three digits are not decimals, and words beside them are words.
        assert refusal([f"1{other}000{other}000", "words"], own).got == "text (first in row 2)"


def rows(path: Path, cells: CellFormat, **options: Any) -> list[list[float]]:
    return [
        list(row.values())
        for batch, _ in open_batches(path, cells=cells, **options)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_fields_are_separated_as_in_the_header(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text('a|"b, or c"|d\n1|2|3\n'.replace("|", separator))
    assert rows(path, CellFormat()) == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize("cell", ["13,412", "-1,500", "$2,000", "(1,234)", " 999,999 € "])
def test_commas_of_a_file_with_semicolons_are_not_guessed(tmp_path: Path, cell: str) -> None:
    """Thirteen and a bit, or thirteen thousand: a release of the wrong one cannot be undone."""
    path = tmp_path / "x.csv"
    path.write_text(f"a;b\n1;2\n3;{cell}\n", encoding="utf-8")
    with pytest.raises(DataRefused, match=r"column 'b' .* got commas that may be decimal signs") as refused:
        rows(path, CellFormat())
    assert "if they are decimals give decimal=','" in str(refused.value)
    assert rows(path, CellFormat(), columns=["a"]) == [[1.0], [3.0]]
    if "€" not in cell and "$" not in cell and "(" not in cell:
        assert rows(path, CellFormat(decimal=","))[1][1] == float(cell.replace(",", "."))
    path.write_text("a;b\n1;$1,234.50\n2;1,234,567\n")
    assert rows(path, CellFormat()) == [[1.0, 1234.5], [2.0, 1234567.0]]


def test_tsv_is_a_known_ending(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("a\tb\n1\t2,000\n")
    assert rows(path, CellFormat()) == [[1.0, 2000.0]]


@pytest.mark.parametrize("gap", ["", "NA", " nan ", "-", "null"])
def test_records_with_gaps_are_dropped_or_refused(tmp_path: Path, gap: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"id,a,b\np,1,2\nq,3,{gap}\nr,5,6\n")
    chosen: dict[str, Any] = {"columns": ["a", "b"], "unit_column": "id"}
    with open_batches(path, cells=CellFormat(drop_missing=True), **chosen) as stream:
        ((batch, units),) = list(stream)
    assert batch.to_pylist() == [{"a": 1.0, "b": 2.0}, {"a": 5.0, "b": 6.0}]
    assert units.to_pylist() == ["p", "r"]
    if gap in ("NA", "-", "null"):
        with pytest.raises(
            DataRefused,
            match=r"missing values \(first in line \d+\); correct those records, or leave them out",
        ):
            list(open_batches(path, **chosen))


def test_labels_and_ids_are_never_taken_for_gaps(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,a\nnone,1\n-,2\n")
    with open_batches(path, columns=["a"], unit_column="id", cells=CellFormat(drop_missing=True)) as stream:
        ((_, units),) = list(stream)
    assert units.to_pylist() == ["none", "-"]


def test_gaps_of_parquet_files_are_dropped(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"a": [1.0, None, float("nan"), 4.0], "b": [1, 2, 3, 4]}), path)
    assert rows(path, CellFormat(drop_missing=True)) == [[1.0, 1], [4.0, 4]]


def test_a_file_without_a_whole_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,\n,2\n")
    with pytest.raises(DataRefused, match="at least one record"):
        list(open_batches(path, cells=CellFormat(drop_missing=True)))


@pytest.mark.parametrize("decimal", ["", "x", ";", ".."])
def test_other_decimal_signs_are_refused(decimal: str) -> None:
    with pytest.raises(UsageError, match="decimal must be"):
        CellFormat(decimal=decimal)


def test_records_are_dropped_under_add_remove_alone() -> None:
    """Under replace the number of records is public, and must not depend on what they hold."""
    CellFormat(drop_missing=True).check_relation("add/remove")
    CellFormat().check_relation("replace")
    with pytest.raises(UsageError, match="drop_missing is for releases under add/remove"):
        CellFormat(drop_missing=True).check_relation("replace")
