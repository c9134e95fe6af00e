"""What the client takes: frames, bounds in every form of the library, and names of accounts."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushsum as hs
from hushsum.client import RemoteDataset
from hushsum.errors import DataRefused, ServiceRefused, UsageError
from hushsum.records import Bounds
from tests.exact_tallies import exact_table
from tests.in_process_service import SMALL, Town, listening

POINTS = np.random.default_rng(0).normal([1.0, -2.0], [1.0, 0.5], (300, 2)).round(3)
FRAME = pd.DataFrame(POINTS, columns=["a", "b"], index=np.arange(300) + 7)
PARAMETERS = {name: value for name, value in SMALL.items() if name != "bounds"}
BOX = ((-1.0, 3.0), (-4.0, 4.0))


@pytest.fixture
def data(town: Town) -> Iterator[RemoteDataset]:
    """A dataset of the client, whose jobs are done as they come."""
    end = threading.Event()

    def work() -> None:
        while not end.wait(0.01):
            town.work()

    worker = threading.Thread(target=work)
    with listening(town.app) as url, hs.connect(url, town.tokens["olga"]) as service:
        worker.start()
        try:
            yield service.create_dataset("pay", epsilon=8.0)
        finally:
            end.set()
            worker.join()


def table(town: Town, data: RemoteDataset, source: Any, **requested: Any) -> Any:
    """The secret counts that an upload was counted into."""
    upload = data.upload(source, format="csv" if isinstance(source, io.BytesIO) else None)
    tally = data.tally(upload, **{**PARAMETERS, "bounds": (-5, 5), **requested})
    return exact_table(hs.load_tally(town.settings.path("tallies", f"{tally}.tally")))


def test_frames_of_every_kind_are_uploaded(town: Town, data: RemoteDataset) -> None:
    text = io.BytesIO(FRAME.to_csv(index=False).encode())
    expected = table(town, data, text)
    with duckdb.connect() as connection:
        for source in (
            FRAME,
            pl.DataFrame(POINTS, schema=["a", "b"]),
            pl.DataFrame(POINTS, schema=["a", "b"]).lazy(),
            pa.table({"b": POINTS[:, 1], "a": POINTS[:, 0]}),
            pa.RecordBatch.from_arrays([pa.array(POINTS[:, 0]), pa.array(POINTS[:, 1])], names=["a", "b"]),
            connection.sql("SELECT * FROM FRAME"),
        ):
            np.testing.assert_array_equal(table(town, data, source), expected, type(source).__name__)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (POINTS, "must be the path of a file, .* or a frame, got a ndarray; give the path"),
        ([[1.0, 2.0]], "got a list"),
        (io.StringIO("a,b\n1,2\n"), "opened in binary mode, or a frame, got a file of text"),
        (None, "got a NoneType"),
        (7, "got 7"),
        ("none.csv", "must be an existing file"),
        (FRAME["a"], "must be the path of a file"),
    ],
)
def test_other_sources_are_refused_in_words(data: RemoteDataset, source: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        data.upload(source)


def test_a_column_of_several_types_is_refused_and_not_shown(data: RemoteDataset) -> None:
    mixed = pd.DataFrame({"a": [1, "31415", b"x"]})
    with pytest.raises(DataRefused, match="a frame whose columns have one type each") as refused:
        data.upload(mixed)
    assert "31415" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


@pytest.mark.parametrize(
    "bounds",
    [
        [(-1.0, 3.0), (-4.0, 4.0)],
        {"b": (-4.0, 4.0), "a": (-1.0, 3.0)},
        {"a": np.array([-1.0, 3.0]), "b": [np.float32(-4.0), np.int64(4)]},
        np.array(BOX),
        BOX,
        Bounds.of(BOX, 2),
    ],
    ids=["pairs", "names", "names and arrays", "array", "tuples", "box"],
)
def test_bounds_in_every_form_of_the_library(town: Town, data: RemoteDataset, bounds: Any) -> None:
    expected = hs.race(
        hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=60, width=50, bounds=BOX, columns=["a", "b"]
    ).add(FRAME)
    np.testing.assert_array_equal(table(town, data, FRAME, bounds=bounds), exact_table(expected))
    plan = data.plan(records=1000, epsilon=1.0, bandwidth=1.0, kernel="gaussian", dim=2, bounds=bounds)
    assert plan["options"][0]["method"] == "grid"


def test_bounds_that_are_wrong_are_refused_as_by_the_library(data: RemoteDataset) -> None:
    upload = data.upload(FRAME)
    with pytest.raises(UsageError, match="bounds must have the name of every column once and no other"):
        data.tally(upload, **PARAMETERS, bounds={"a": (0, 1)})
    with pytest.raises(UsageError, match="bounds of column 'b' must be finite with low < high"):
        data.tally(upload, **PARAMETERS, bounds={"a": (0, 1), "b": (1, 0)})


def test_decimal_commas_of_a_file(town: Town, data: RemoteDataset, tmp_path: Path) -> None:
    path = tmp_path / "pay.csv"
    FRAME.to_csv(path, sep=";", decimal=",", index=False)
    with pytest.raises(
        DataRefused, match=r"got decimal commas \(first in line \d+\) in 'a', .*; give decimal=','$"
    ):
        table(town, data, path)
    np.testing.assert_array_equal(table(town, data, path, decimal=","), table(town, data, FRAME))


def grants(town: Town, function: str) -> Any:
    return town.ok("olga", "GET", f"/functions/{function}/grants")


def test_a_grant_to_nobody_says_what_to_do(town: Town, data: RemoteDataset) -> None:
    tally = data.tally(data.upload(FRAME), **PARAMETERS, bounds=(-5, 5))
    function = data.release(tally, "pay", epsilon=0.5)
    town.create_account("anna & axel (office)", "analyst")
    data.grant(function, "anna & axel (office)")
    for name in ("nobody", "otto", "a?b"):
        with pytest.raises(UsageError, match=r"none in use has this name; .* ask an administrator to create"):
            data.grant(function, name)
    with pytest.raises(ServiceRefused):
        data.grant(function, "x/../anna")
    assert [each["account"] for each in grants(town, function.id)] == ["anna & axel (office)"]
