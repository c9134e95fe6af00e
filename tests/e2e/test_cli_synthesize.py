"""``hushsum synthesize`` and ``hushsum sample``: from a file of mixed columns to synthetic tables."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.e2e.conftest import QuickShell

openpyxl: Any = import_module("openpyxl")

RECORDS = 2387
DECLARED = {
    "age": {"kind": "numbers", "low": 0, "high": 100, "bins": 5, "fill": 0, "whole": True},
    "ward": {"kind": "categories", "values": ["heart", "lung"]},
}
RELEASE = ("--epsilon", "2", "--delta", "1e-6", "--yes")


@pytest.fixture
def folder(quick: QuickShell) -> Path:
    tmp_path = quick.folder
    rng = np.random.default_rng(0)
    old = rng.random(RECORDS) < 0.5
    age = np.where(old, rng.integers(60, 90, RECORDS), rng.integers(10, 40, RECORDS))
    missing = rng.random(RECORDS) < 0.2
    ward = pa.array(np.where(old, "heart", "lung")).dictionary_encode()
    table = pa.table({"age": pa.array(age, pa.uint8(), mask=missing), "ward": ward, "ill": old})
    pq.write_table(table, tmp_path / "visits.parquet")
    (tmp_path / "columns.json").write_text(json.dumps(DECLARED))
    return tmp_path


def test_a_table_its_model_and_further_tables(folder: Path, quick: QuickShell) -> None:
    declared = ("--declare", "columns.json", "--flag", "ill")
    made = quick.run("synthesize", "visits.parquet", *declared, *RELEASE, "--json", "-o", "made.parquet")
    assert made.code == 0, made.err
    report = made.json
    assert len(report["expected_errors"]) == 6
    table = pq.read_table(folder / "made.parquet")
    assert [str(each.type) for each in table.schema] == ["int64", "string", "bool"]
    assert table.num_rows == report["rows"]
    assert abs(table.num_rows - RECORDS) < 200
    frame = table.to_pandas()
    assert (frame["ward"][frame["ill"].eq(True)] == "heart").mean() > 0.9
    again = quick.run("sample", "made.hush", "-n", "5000", "-o", "more.parquet")
    assert again.code == 0, again.err
    assert pq.read_table(folder / "more.parquet").schema.equals(table.schema)
    shown = quick.ok("show", "made.hush")
    (errors,) = [line for line in shown.text.splitlines() if line.startswith("expected errors")]
    for columns in ("age", "ward", "ill", "age × ward", "age × ill", "ward × ill"):
        assert re.search(rf" {columns} [\d.]+ %[, ]", errors), errors
    assert quick.ok("show", "made.hush", "--json").json["expected_errors"] == report["expected_errors"]
    lines = quick.run("sample", "made.hush", "-n", "3").text.splitlines()
    assert lines[0] == "age,ward,ill"
    assert len(lines) == 4


def test_missing_values_may_be_dropped_and_csv_is_read(folder: Path, quick: QuickShell) -> None:
    records = "30,heart,2024-05-31\n,lung,2024-01-01\n70,,2024-02-29\n" * 400
    (folder / "visits.csv").write_text(f"age,ward,day\n{records}")
    run = quick.run("synthesize", "visits.csv", "--number", "age=0:100:5", "--category", "ward=heart,lung",
                "--date", "day=2024-01-01:2024-12-31:12",
                "--drop-missing", *RELEASE, "--rows", "400", "-o", "made.csv")  # fmt: skip
    assert run.code == 0, run.err
    rows = (folder / "made.csv").read_text().splitlines()[1:]
    assert len(rows) == 400
    assert sum("heart" in row for row in rows) > 300


def test_semicolons_and_decimal_commas(folder: Path, quick: QuickShell) -> None:
    (folder / "pay.csv").write_text(
        "Ort;Lohn (€)\n" + "Köln;1.500,50 €\nUlm;900,00\n" * 300, encoding="utf-8"
    )
    declared = ("--number", "Lohn (€)=0:2000:2", "--category", "Ort=Köln,Ulm")
    refused = quick.run("synthesize", "pay.csv", *declared, *RELEASE, "-o", "made.csv")
    assert refused.code == 6
    assert "give --decimal ," in refused.err
    run = quick.run("synthesize", "pay.csv", "--decimal", ",", *declared, *RELEASE, "--rows", "400",
                "-o", "made.csv")  # fmt: skip
    assert run.code == 0, run.err
    rows = [line.split(",") for line in (folder / "made.csv").read_text(encoding="utf-8").splitlines()[1:]]
    assert sum((float(pay) > 1000) == ("Köln" in town) for pay, town in rows if pay) > 300


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("visits.parquet", "-o", "made.parquet"), 2, "declared"),
        (("visits.parquet", "--number", "age", "-o", "made.parquet"), 2, "--number"),
        (("visits.parquet", "--category", "ward", "-o", "made.parquet"), 2, "--category"),
        (("visits.parquet", "--flag", "nobody", "-o", "made.parquet"), 2, "nobody"),
        (("visits.parquet", "--flag", "ill", "--flag", "ill", "-o", "made.parquet"), 2, "twice"),
        (("visits.parquet", "--flag", "ill", "-o", "made.txt"), 2, "--output"),
        (("visits.parquet", "--flag", "ill", "-o", "visits.parquet"), 2, "input"),
        (("visits.parquet", "--declare", "visits.parquet", "-o", "made.csv"), 2, "JSON"),
        (("visits.parquet", "--number", "age=0:100:5", "--category", "ward=heart", "--flag", "ward",
          "-o", "made.csv"), 2, "twice"),
        (("columns.json", "--flag", "ill", "-o", "made.csv"), 2, ".parquet"),
        (("broken.parquet", "--flag", "ill", "-o", "made.csv"), 6, "broken"),
    ],
)  # fmt: skip
def test_what_is_refused(
    folder: Path, quick: QuickShell, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (folder / "broken.parquet").write_bytes(b"PAR1 nothing PAR1")
    run = quick.run("synthesize", *arguments, *RELEASE)
    assert run.code == code, run.err
    assert words in run.err
    assert "Traceback" not in run.err
    assert not list(folder.glob("made.*"))


def test_a_workbook_is_read_as_by_other_commands(folder: Path, quick: QuickShell) -> None:
    made = openpyxl.Workbook()
    made.active.append(["age", "ward"])
    for row in ([30, "heart"], ["NA", "lung"]) * 300:
        made.active.append(row)
    made.active.title = "visits"
    made.create_sheet("notes")
    made.save(folder / "visits.xlsx")
    declared = ("--number", "age=0:100:5", "--category", "ward=heart,lung", *RELEASE)
    run = quick.run("synthesize", "visits.xlsx", *declared, "--sheet", "visits", "-o", "made.csv")
    assert run.code == 0, run.err
    assert 500 < len((folder / "made.csv").read_text().splitlines()) < 700
    sentence = quick.refused(2, "synthesize", "visits.xlsx", *declared, "--sheet", "Visits", "-o", "x.csv")
    assert (
        "--sheet must name a sheet of visits.xlsx, got 'Visits'; the sheets are 'visits', 'notes'" in sentence
    )
    sentence = quick.refused(2, "synthesize", "visits.xls", *declared, "-o", "x.csv")
    assert "visits.xls does not exist" in sentence
