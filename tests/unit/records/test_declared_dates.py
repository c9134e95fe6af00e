"""Columns of dates: the day of each value, whatever held it, in its part of the declared range."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hushsum.errors import DataRefused, UsageError
from hushsum.records import CategoryColumn, DateColumn, NumberColumn, column_from_json, mixed_columns

YEAR = DateColumn("2024-01-01", "2024-12-31", bins=4)
MOMENTS: list[Any] = [
    pd.Timestamp("2024-04-01 23:59:59"),
    pd.Timestamp("2024-04-02"),
    None,
    pd.Timestamp("1969-12-31 12:00"),
]
DAYS = [None if each is None else each.date() for each in MOMENTS]


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"day": pa.array(DAYS, pa.date32())}),
        pa.table({"day": pa.array(DAYS, pa.date64())}),
        pa.table({"day": ["2024-04-01T23:59:59", "2024-04-02", None, " 1969-12-31"]}),
        pd.DataFrame({"day": pd.to_datetime(MOMENTS)}),
        pd.DataFrame({"day": pd.to_datetime(MOMENTS).tz_localize("America/New_York")}),
        [[each] for each in DAYS],
        np.array([[each] for each in DAYS], "datetime64[D]"),
    ],
    ids=["date32", "date64", "text", "pandas", "time zone", "lists", "numpy"],
)
def test_the_day_of_a_value_is_counted(data: Any) -> None:
    """The range is clipped to, and a part begins with its day."""
    (chunks,) = mixed_columns(data, count=1, names=None)
    assert YEAR.codes(chunks, "column 'day'").tolist() == [0, 1, 4, 0]


def test_labels_and_draws_agree_with_codes() -> None:
    column = DateColumn(
        "2024-01-01", "2024-03-01", bins=["2024-01-01", "2024-02-01", "2024-03-01"], missing="refuse"
    )
    assert column.labels == ("[2024-01-01, 2024-02-01)", "[2024-02-01, 2024-03-01]")
    assert column_from_json(column.as_json()) == column
    for each, size in ((column, 2), (YEAR, 5)):
        codes = np.arange(size, dtype=np.int32).repeat(200)
        drawn = each.drawn(codes, np.random.default_rng(0))
        np.testing.assert_array_equal(each.codes(pa.chunked_array([pa.array(drawn)]), "drawn"), codes)
        assert str(pa.array(drawn).type) == "date32[day]"


def test_a_pattern_reads_text() -> None:
    column = DateColumn("2024-01-01", "2024-12-31", pattern="%d.%m.%Y")
    assert column.codes(
        pa.chunked_array([pa.array(["31.12.2024", None], pa.large_string())]), "day"
    ).tolist() == [11, 12]


def test_what_is_refused() -> None:
    dates = pa.chunked_array([pa.array([datetime.date(2024, 5, 17)])])
    text = pa.chunked_array([pa.array(["77123"], pa.large_string())])
    numbers = pa.chunked_array([pa.array([77123])])
    for column, chunks in (
        (YEAR, text),
        (YEAR, numbers),
        (NumberColumn(0, 1), dates),
        (CategoryColumn(["a"]), dates),
        (
            DateColumn("2024-01-01", "2024-12-31", missing="refuse"),
            pa.chunked_array([pa.array([None], pa.date32())]),
        ),
    ):
        with pytest.raises(DataRefused) as refused:
            column.codes(chunks, "column 'day'")
        assert "77123" not in str(refused.value)
        assert "05-17" not in str(refused.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": "2024-13-01"},
        {"high": "2023-01-01"},
        {"low": 3},
        {"bins": ["2024-01-01", "2025-01-01"]},
        {"bins": 0},
        {"missing": "other"},
        {"pattern": "dates"},
    ],
)
def test_wrong_declarations(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        DateColumn(**{"low": "2024-01-01", "high": "2024-12-31", **wrong})
