"""Declared markers of missing values, and the refusal of a file for all of its cells at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.in_process_service import Town

from hushsum.errors import DataRefused, UsageError
from hushsum.records import CellFormat, open_batches

MARKED = CellFormat(missing=("k.A.", "999"), drop_missing=True)
CELLS: dict[str, list[Any]] = {"a": ["1", "k.A.", "3", " 999 ", "5"], "b": ["10", "20", "999.0", "40", "50"]}
LEFT = [[1.0, 10.0], [5.0, 50.0]]
SECRET = "31415926"


def written(folder: Path, kind: str, cells: dict[str, list[Any]]) -> Path:
    path = folder / f"x.{kind}"
    frame = pd.DataFrame(cells)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "xlsx":
        # Excel stores a number as a number.
        frame.map(lambda each: float(each) if each.strip()[:1].isdigit() else each).to_excel(
            path, index=False
        )
    else:
        frame.to_parquet(path)
    return path


def read(path: Path, cells: CellFormat) -> list[list[float]]:
    with open_batches(path, cells=cells) as stream:
        return [list(row.values()) for batch, _ in stream for row in batch.to_pylist()]


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_every_reader_takes_declared_markers(tmp_path: Path, kind: str) -> None:
    assert read(written(tmp_path, kind, CELLS), MARKED) == LEFT


def test_a_number_that_is_a_marker_is_missing_in_columns_of_numbers(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 999, 3], "b": [0.5, 1.5, 999.0]}).to_parquet(tmp_path / "n.parquet")
    assert read(tmp_path / "n.parquet", MARKED) == [[1.0, 0.5]]


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_markers_are_refused_where_records_are_not_dropped(tmp_path: Path, kind: str) -> None:
    """And never counted as the number that they look like."""
    path = written(tmp_path, kind, {"a": ["1", "999", "3"], "b": ["1", "2", "3"]})
    place = {"csv": "line 3", "parquet": "row 2", "xlsx": "row 3"}[kind]
    with pytest.raises(DataRefused, match=rf"column 'a' .*missing values \(first in {place}\)"):
        read(path, CellFormat(missing=("999",)))


def test_all_causes_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    """Also those of later batches; no cell and no number of records is shown."""
    rows = ["1,2,3"] * 300_000
    rows[5], rows[6], rows[250_000], rows[290_000] = f"Geheim{SECRET},2,3", "NA,2,3", "1,2024-05-31,3", "1,2,"
    (tmp_path / "x.csv").write_text("\n".join(["a,b,c", *rows, ""]))
    with pytest.raises(DataRefused) as refused:
        read(tmp_path / "x.csv", CellFormat())
    said = str(refused.value)
    assert "columns 'a', 'b', 'c'" in said
    for fault in (
        "missing values (first in line 8) in 'a'",
        "text (first in line 7) in 'a'",
        "dates (first in line 250002) in 'b'",
        "missing values (first in line 290002) in 'c'",
    ):
        assert fault in said
    assert "known markers of missing values: an empty cell, NA" in said
    assert "declare others with missing" in said
    assert SECRET not in said
    assert "300" not in said.replace("300002", "")


def test_markers_that_are_none_are_refused() -> None:
    wrong: Any
    for wrong in ("k.A.", ("",), (" ",), (3,)):
        with pytest.raises(UsageError, match="missing must be a list of texts"):
            CellFormat(missing=wrong)


def test_the_service_takes_them(tmp_path: Path) -> None:
    town = Town(tmp_path)
    dataset = town.dataset()
    lines = ["a,b", *("1,2" for _ in range(30)), "k.A.,2", "999,2", ""]
    counted = {"columns": ["a", "b"], "bandwidth": 1.0, "bounds": [[0, 5]], "drop_missing": True}
    for missing, state in (([], "failed"), (["k.A.", "999"], "done")):
        upload = town.upload(dataset, "\n".join(lines).encode())
        job = town.job(f"/datasets/{dataset}/tallies", {"upload": upload, "missing": missing, **counted})
        assert job["state"] == state, job


def test_numbers_are_unchanged_by_markers_of_text(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(50, 2)).round(3)
    np.savetxt(tmp_path / "x.csv", values, delimiter=",", header="a,b", comments="", fmt="%.3f")
    assert read(tmp_path / "x.csv", CellFormat(missing=("k.A.",))) == values.tolist()
