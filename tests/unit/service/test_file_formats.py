"""Uploads whose cells are written in other ways than with decimal points in UTF-8, and forms of bounds."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from tests.exact_tallies import exact_table
from tests.in_process_service import SECRET, SMALL, Town, records

openpyxl: Any = import_module("openpyxl")

COMMAS = records().replace(b",", b";").replace(b".", b",")
FORMATTED = {"decimal": ",", "encoding": "utf-16"}
IN_UTF_16 = COMMAS.decode().encode("utf-16")


@pytest.fixture
def dataset(town: Town) -> str:
    return town.dataset(epsilon=8.0)


def counted(town: Town, dataset: str, data: bytes, **requested: Any) -> Any:
    body = {"upload": town.upload(dataset, data), **SMALL, **requested}
    return town.job(f"/datasets/{dataset}/tallies", body)


def counts(town: Town, job: Any) -> Any:
    assert job["state"] == "done", job
    tally = hs.load_tally(town.settings.path("tallies", f"{job['result']['tally']}.tally"))
    return exact_table(tally)


def test_decimal_commas_are_counted_where_they_are_declared(town: Town, dataset: str) -> None:
    expected = counts(town, counted(town, dataset, records()))
    np.testing.assert_array_equal(counts(town, counted(town, dataset, COMMAS, decimal=",")), expected)
    np.testing.assert_array_equal(counts(town, counted(town, dataset, IN_UTF_16, **FORMATTED)), expected)


def test_the_refusal_names_what_the_request_takes(town: Town, dataset: str) -> None:
    job = counted(town, dataset, COMMAS)
    assert job["state"] == "failed"
    assert "got decimal commas (first in line 2) in 'a'" in job["problem"]["detail"]
    assert job["problem"]["detail"].endswith('; give "decimal": ","')
    assert SECRET not in str(job)
    job = counted(town, dataset, IN_UTF_16, decimal=",")
    assert '"encoding": "windows-1252" (utf-16 for' in job["problem"]["detail"]
    # The upload is kept: it is counted by another request, and not sent again.
    waiting = [each["id"] for each in town.ok("olga", "GET", f"/datasets/{dataset}/uploads")]
    again = town.job(f"/datasets/{dataset}/tallies", {"upload": waiting[1], **SMALL, **FORMATTED})
    assert again["state"] == "done", again


def test_dates_are_numbers_where_they_are_declared(town: Town, dataset: str) -> None:
    file = b"a,b\n" + b"02.01.1970,1\n03.01.1970,2\n" * 10
    dated = {"dates": ["a"], "date_format": "%d.%m.%Y"}
    expected = counts(town, counted(town, dataset, b"a,b\n" + b"1,1\n2,2\n" * 10))
    np.testing.assert_array_equal(counts(town, counted(town, dataset, file, **dated)), expected)
    assert "name the column in dates" in counted(town, dataset, file)["problem"]["detail"]


def test_models_streams_and_public_rows_read_such_files(town: Town, dataset: str) -> None:
    path = f"/datasets/{dataset}"
    points = np.random.default_rng(1).normal([1.0, -2.0], [1.0, 0.5], (40, 2))
    rows = [f"{a:.3f};{b:.3f}".replace(".", ",") for a, b in points]
    public = town.upload(dataset, "\n".join(["a;b", *rows, ""]).encode())
    model = {"name": "near", "model": "neighbors", "columns": ["a", "b"], "epsilon": 0.5, "public": public}
    body = {**model, "upload": town.upload(dataset, COMMAS), "settings": {"rows": 50, "width": 50}}
    town.refused("olga", "POST", f"{path}/models/claims", 422, json=body)
    body["decimal"] = ","
    claim = town.ok("olga", "POST", f"{path}/models/claims", json=body)
    job = town.job(f"{path}/models", {**body, "confirm": claim["confirm"]})
    assert job["state"] == "done", job
    plan = {"records": 1000, "epsilon": [1.0], "public": public, "kernel": "euclidean"}
    assert "decimal commas" in town.refused("olga", "POST", f"{path}/plans", 422, json=plan)["detail"]
    assert town.ok("olga", "POST", f"{path}/plans", json={**plan, "decimal": ","})["basis"] == "public data"
    tally = counted(town, dataset, COMMAS, decimal=",")["result"]["tally"]
    terms = town.confirmed(dataset, tally, epsilon=0.5, public=public, decimal=",")
    job = town.job(f"{path}/releases", terms)
    assert job["state"] == "done", job
    stream = {**SMALL, "name": "pay", "horizon": 2, "epsilon": 0.5, "delta": 1e-9, "decimal": ","}
    stream["allow_large_delta"] = True
    town_of_delta = town.dataset(name="other", epsilon=2.0, delta=1e-6)
    path = f"/datasets/{town_of_delta}/streams"
    confirm = town.ok("olga", "POST", f"{path}/claims", json=stream)["confirm"]
    started = town.job(path, {**stream, "confirm": confirm})["result"]["stream"]
    uploads = [town.upload(town_of_delta, COMMAS)]
    step = town.job(f"{path}/{started}/steps", {"uploads": uploads})
    assert step["state"] == "done", step


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"decimal": "!"}, "body/decimal"),
        ({"encoding": "utf-7"}, "must be one of utf-8, utf-16, "),
        ({"encoding": "../../etc/passwd"}, "must be one of utf-8, utf-16, "),
        ({"dates": ["a"], "date_format": "day"}, "date_format must be made of"),
        ({"dates": ["a"], "date_origin": "never"}, "date_origin must be a date"),
        ({"dates": ["a"], "date_unit": "moons"}, "body/date_unit"),
        ({"bounds": {"a": [0, 1]}}, "bounds must have the name of every column once and no other"),
        ({"bounds": {"a": [0, 1], "b": [1, 0]}}, "bounds of column 'b' must be finite with low < high"),
        ({"bounds": {"a": [0, 1], "b": [1]}}, "body/bounds/by_name/b"),
        ({"bounds": [0, 1, 2]}, "body/bounds/for_all"),
        ({"bounds": "0:1"}, "body/bounds/each"),
    ],
)
def test_requests_that_are_refused_at_once(town: Town, dataset: str, wrong: Any, says: str) -> None:
    body = {"upload": town.upload(dataset), **SMALL, **wrong}
    headers = {"idempotency-key": "0123456789"}
    path = f"/datasets/{dataset}/tallies"
    refused = town.refused("olga", "POST", path, 422, json=body, headers=headers)
    assert says in refused["detail"] + str(refused.get("faults"))


def test_bounds_in_every_form_of_the_library(town: Town, dataset: str) -> None:
    pairs = [[-5.0, 5.0], [-4.0, 4.0]]
    expected = counts(town, counted(town, dataset, records(), bounds=pairs))
    named = {"b": pairs[1], "a": pairs[0]}
    np.testing.assert_array_equal(counts(town, counted(town, dataset, records(), bounds=named)), expected)
    both = {"bounds": [-5, 5]}, {"bounds": [[-5, 5]]}, {"bounds": {"b": [-5, 5], "a": [-5, 5]}}
    one, other, by_name = (counts(town, counted(town, dataset, records(), **each)) for each in both)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, by_name)
    # Bounds by name choose the columns too, in their order.
    facts = counted(town, dataset, records(), columns=None, bounds={"b": [-5, 5]})["result"]["tally"]
    listed = town.ok("olga", "GET", f"/datasets/{dataset}/tallies")
    assert [each["facts"]["columns"] for each in listed if each["id"] == facts] == [["b"]]


def test_plans_and_models_take_bounds_by_name(town: Town, dataset: str) -> None:
    plan: dict[str, Any] = {"records": 1000, "epsilon": [1.0], "kernel": "gaussian", "bandwidth": 1.0}
    path = f"/datasets/{dataset}/plans"
    named = town.ok("olga", "POST", path, json={**plan, "bounds": {"a": [0, 5], "b": [0, 9]}})
    assert named == town.ok("olga", "POST", path, json={**plan, "bounds": [[0, 5], [0, 9]], "dim": 2})
    model = {"name": "near", "model": "neighbors", "columns": ["a", "b"], "epsilon": 0.5}
    body = {**model, "upload": town.upload(dataset), "settings": {"radius": 1.0, "rows": 50, "width": 50}}
    path = f"/datasets/{dataset}/models"
    body["bounds"] = {"b": [-4, 4], "a": [-5, 5]}
    claim = town.ok("olga", "POST", f"{path}/claims", json=body)
    job = town.job(path, {**body, "confirm": claim["confirm"]})
    assert job["state"] == "done", job
    facts = town.ok("olga", "GET", f"/functions/{job['result']['function']}")["facts"]["model"]
    assert facts["bounds"] == [[-5.0, 5.0], [-4.0, 4.0]]


def workbook(rows: Any) -> bytes:
    book = openpyxl.Workbook()
    book.active.append(["note"])
    sheet = book.create_sheet("people")
    for row in rows:
        sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def test_records_with_gaps_are_left_out_where_that_is_declared(town: Town, dataset: str) -> None:
    complete, gapped = b"a,b\n1,2\n3,4\n", b"a,b\n1,2\n,5\n3,4\n7,NA\n"
    refused = counted(town, dataset, gapped)
    assert refused["state"] == "failed"
    assert "leave them out with drop_missing" in refused["problem"]["detail"]
    job = counted(town, dataset, gapped, drop_missing=True)
    np.testing.assert_array_equal(counts(town, job), counts(town, counted(town, dataset, complete)))
    terms = {"tally": job["result"]["tally"], "name": "gaps", "epsilon": 1.0}
    path = f"/datasets/{dataset}/claims"
    assert town.ok("olga", "POST", path, json=terms)["claim"]["relation"] == "add/remove"
    answer = town.refused("olga", "POST", path, 422, json={**terms, "relation": "replace"})
    assert "must be 'add/remove'" in answer["detail"]


def test_models_are_fitted_on_records_without_gaps(town: Town, dataset: str) -> None:
    gapped = b"a,b\n" + b"1,2\n,3\n2,\n2,1\n" * 60
    model = {"name": "near", "model": "neighbors", "columns": ["a", "b"], "epsilon": 0.5, "bounds": [0, 4]}
    body = {**model, "settings": {"rows": 50, "width": 50, "bandwidth": 1.0}}
    path = f"/datasets/{dataset}/models"
    for dropped, state in ((False, "failed"), (True, "done")):
        terms = {**body, "upload": town.upload(dataset, gapped), "drop_missing": dropped}
        claim = town.ok("olga", "POST", f"{path}/claims", json=terms)
        job = town.job(path, {**terms, "confirm": claim["confirm"]})
        assert job["state"] == state, job


def test_a_sheet_of_a_workbook_is_counted(town: Town, dataset: str) -> None:
    rows = [[1.5, 2.0], [3.0, None], [0.5, 4.0]]
    upload = town.upload(dataset, workbook([["a", "b"], *rows]), format="xlsx")
    body = {**SMALL, "upload": upload, "sheet": "people", "drop_missing": True}
    job = town.job(f"/datasets/{dataset}/tallies", body)
    expected = counted(town, dataset, b"a,b\n1.5,2\n0.5,4\n")
    np.testing.assert_array_equal(counts(town, job), counts(town, expected))
    town.refused("olga", "POST", f"/datasets/{dataset}/uploads?format=xlsx", 422, content=b"a,b\n1,2\n")
