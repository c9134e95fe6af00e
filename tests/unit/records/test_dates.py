"""Dates as numbers, in CSV, Parquet and workbooks: each cell alone, by what is declared."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from hushsum.errors import DataRefused, UsageError
from hushsum.records import UNITS, CellFormat, DateFormat, open_batches

DAYS = ["2024-01-01", "2024-01-31", "2023-12-31"]
NUMBERS = [0.0, 30.0, -1.0]
SINCE = DateFormat(("day",), origin="2024-01-01")


def read(path: Path, dates: DateFormat = SINCE, **cells: Any) -> list[float | None]:
    with open_batches(path, columns=["day"], cells=CellFormat(dates=dates, **cells)) as stream:
        return [row["day"] for batch, _ in stream for row in batch.to_pylist()]


def frame() -> pd.DataFrame:
    return pd.DataFrame({"day": pd.to_datetime(DAYS), "x": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".feather", ".xlsx"])
def test_every_kind_of_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    table = frame()
    if suffix.startswith(".csv"):
        table.to_csv(path, index=False)
    elif suffix == ".xlsx":
        table.to_excel(path, index=False)
    else:
        (table.to_parquet if suffix == ".parquet" else table.to_feather)(path)
    assert read(path) == NUMBERS
    kind = "must be of numbers, got dates"
    with pytest.raises(DataRefused, match=kind), open_batches(path, columns=["day"]) as stream:
        list(stream)


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), pa.timestamp("ns"), pa.timestamp("s", "UTC")])
def test_types_of_arrow(kind: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    days = [datetime.datetime.fromisoformat(each) for each in DAYS]
    values = pa.array(days, pa.timestamp("us", getattr(kind, "tz", None))).cast(kind)
    parquet.write_table(pa.table({"day": values}), tmp_path / "x.parquet")
    assert read(tmp_path / "x.parquet") == NUMBERS


@pytest.mark.parametrize(
    ("cell", "pattern", "number"),
    [
        ("2024-01-02 12:00", None, 1.5),
        ("2024-01-02T06:00:00", None, 1.25),
        ("31.01.2024", "%d.%m.%Y", 30.0),
        ("01/31/2024", "%m/%d/%Y", 30.0),
        ("31.1.2024 12:00", "%d.%m.%Y %H:%M", 30.5),
    ],
)
def test_ways_to_write_them(cell: str, pattern: str | None, number: float, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"day\n{cell}\n")
    assert read(tmp_path / "x.csv", DateFormat(("day",), pattern, origin="2024-01-01")) == [number]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("NA", "missing values"),
        ("31.01.2024", "written in another way"),
        ("2024-01-31T00:00:00Z", "time zone"),
        ("secret", r"other text \(first in line 3\); give .*date_format"),
        ("31 January 2024", r"other text \(first in line 3\); give .*date_format"),
    ],
)
def test_other_cells_are_refused_by_their_kind_and_not_shown(cell: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"day\n2024-01-01\n{cell}\n")
    with pytest.raises(DataRefused, match=kind) as refused:
        read(tmp_path / "x.csv")
    assert cell not in str(refused.value).split("known markers")[0]


def test_a_date_depends_on_its_own_cell_alone(tmp_path: Path) -> None:
    ambiguous = "03.04.2024"
    for others in ([], ["25.12.2023"], ["01.02.2024", "31.01.2024"]):
        (tmp_path / "x.csv").write_text("\n".join(["day", ambiguous, *others]) + "\n")
        assert read(tmp_path / "x.csv", DateFormat(("day",), "%d.%m.%Y", origin="2024-01-01"))[0] == 93.0


def test_a_column_of_dates_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("day\n20240131\n")
    with pytest.raises(
        UsageError, match="dates must name columns of the data, got 'Day'; did you mean 'day'"
    ):
        read(tmp_path / "x.csv", DateFormat(("Day",), "%Y%m%d"))


def test_records_without_a_date_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("day,x\n2024-01-01,1\n,2\nNA,3\n2024-01-31,4\n")
    assert read(tmp_path / "x.csv", drop_missing=True) == [0.0, 30.0]


def test_typed_dates_may_be_written_as_in_the_files() -> None:
    format = DateFormat(("day",), "%d.%m.%Y", origin="2024-01-01")
    assert format.number("03.02.2024", "bounds") == format.number("2024-02-03", "bounds") == 33.0
    reversed_iso = DateFormat(("day",), "%Y-%d-%m", origin="2024-01-01")
    assert reversed_iso.number("2024-02-03", "bounds") == 33.0, "the ISO form has the same meaning everywhere"
    with pytest.raises(UsageError, match="must be a date"):
        format.number("03.02.24", "bounds")


def test_units_and_typed_dates() -> None:
    for unit, size in UNITS.items():
        one = DateFormat(("day",), unit=unit).numbers(pa.array(["1970-01-02"]))
        assert one is not None
        assert one.to_pylist() == [86_400e6 / size]
    assert DateFormat(unit="weeks").number("1970-01-15", "bounds") == 2.0


@pytest.mark.parametrize(
    "wrong", [{"unit": "moons"}, {"pattern": "dd.mm"}, {"origin": "yesterday"}, {"pattern": "%" * 65}]
)
def test_wrong_declarations(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="date_"):
        DateFormat(("day",), **wrong)
