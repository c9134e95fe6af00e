"""From an upload to a public function, and everything that is refused on the way."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hushsum as hs
from hushsum.service.http import create_app
from hushsum.service.jobs import JobRunner
from hushsum.service.store import Store
from tests.in_process_service import SMALL, Town


def test_from_an_upload_to_answers(town: Town) -> None:
    dataset = town.dataset()
    upload = town.upload(dataset)
    file = town.settings.path("uploads", f"{upload}.csv")
    assert file.stat().st_mode & 0o077 == 0
    job = town.job(f"/datasets/{dataset}/tallies", {"upload": upload, **SMALL})
    assert job["state"] == "done"
    assert not file.exists(), "an upload is deleted after its tally is made"
    tally = job["result"]["tally"]
    assert town.settings.path("tallies", f"{tally}.tally").stat().st_mode & 0o077 == 0

    requested = town.confirmed(dataset, tally, epsilon=0.5)
    job = town.job(f"/datasets/{dataset}/releases", requested, key="first")
    function = job["result"]["function"]
    reported = town.ok("olga", "GET", f"/functions/{function}")
    assert reported["facts"]["claim"]["epsilon"] == 0.5
    answers = town.ok("olga", "POST", f"/functions/{function}/query", json={"points": [[1.0, -2.0], [9, 9]]})
    assert answers["value"][0] > answers["value"][1]
    assert len(answers["stderr"]) == len(answers["bound"]) == 2

    data = town.ask("olga", "GET", f"/functions/{function}/file").content
    assert hashlib.sha256(data).hexdigest() == reported["sha256"]
    local = hs.load(io.BytesIO(data))
    np.testing.assert_array_equal(local.query([[1.0, -2.0], [9.0, 9.0]]).value, answers["value"])

    ledger = town.ok("olga", "GET", f"/datasets/{dataset}/ledger")
    assert [each["step"] for each in ledger["history"]] == ["published"]
    assert ledger["history"][0]["who"] == "olga"
    assert ledger["status"]["spent"]["epsilon"] == "1/2"


def test_the_same_key_never_spends_twice(town: Town) -> None:
    dataset = town.dataset()
    requested = town.confirmed(dataset, town.tally(dataset))
    first = town.job(f"/datasets/{dataset}/releases", requested, key="once")
    again = town.job(f"/datasets/{dataset}/releases", requested, key="once")
    assert first == again
    town.refused(
        "olga",
        "POST",
        f"/datasets/{dataset}/releases",
        422,
        json=town.confirmed(dataset, requested["tally"], epsilon=0.25),
        headers={"idempotency-key": "once"},
    )
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "1/2"


def test_a_claim_must_be_confirmed_as_it_was_shown(town: Town) -> None:
    dataset = town.dataset()
    requested = town.confirmed(dataset, town.tally(dataset), epsilon=0.5)
    reported = town.refused(
        "olga",
        "POST",
        f"/datasets/{dataset}/releases",
        409,
        json={**requested, "epsilon": 1.0},
        headers={"idempotency-key": "k"},
    )
    assert reported["type"].endswith("not-confirmed")


def test_an_exhausted_budget(town: Town) -> None:
    dataset = town.dataset(epsilon=1.0)
    tally = town.tally(dataset)
    jobs = [
        town.ok(
            "olga",
            "POST",
            f"/datasets/{dataset}/releases",
            202,
            json=town.confirmed(dataset, tally, epsilon=0.4),
            headers={"idempotency-key": f"k{i}"},
        )["id"]
        for i in range(4)
    ]
    assert town.work() == 4
    ended = [town.ok("olga", "GET", f"/jobs/{job}") for job in jobs]
    assert [each["state"] for each in ended] == ["done", "done", "failed", "failed"]
    assert ended[2]["problem"]["type"].endswith("budget-exhausted")
    terms = {"tally": tally, "name": "more", "epsilon": 0.4}
    reported = town.refused("olga", "POST", f"/datasets/{dataset}/claims", 409, json=terms)
    assert reported["type"].endswith("budget-exhausted")
    assert dataset not in reported["detail"]


def test_a_plan_reads_no_records(town: Town) -> None:
    dataset = town.dataset()
    requested = {"records": 100_000, "dim": 2, "epsilon": [0.5], "bandwidth": 1.0, "bounds": [[-5, 5]]}
    reported = town.ok("olga", "POST", f"/datasets/{dataset}/plans", json={**requested, "kernel": "gaussian"})
    assert sum(option["best"] for option in reported["options"]) == 1
    assert {option["method"] for option in reported["options"]} == {"grid", "fourier_features"}


def test_a_plan_for_a_tally_is_for_that_one(town: Town, tmp_path: Path) -> None:
    dataset = town.dataset()
    path = tmp_path / "own.tally"
    hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=50, width=40).add(np.zeros((300, 2))).save(path)
    upload = town.upload(dataset, path.read_bytes(), "tally")
    job = town.job(f"/datasets/{dataset}/tallies", {"upload": upload})
    requested = {"records": 300, "epsilon": [0.5], "tally": job["result"]["tally"]}
    reported = town.ok("olga", "POST", f"/datasets/{dataset}/plans", json=requested)
    assert {(each["method"], each["rows"], each["width"]) for each in reported["options"]} == {
        ("race", 50, 40)
    }
    other = town.dataset(name="other")
    refused = town.refused("olga", "POST", f"/datasets/{other}/plans", 422, json=requested)
    assert "tally must be one of this dataset" in refused["detail"]


def test_a_tally_can_be_uploaded(town: Town, tmp_path: Path) -> None:
    dataset = town.dataset()
    kernel = hs.EuclideanKernel(dim=2, bandwidth=1.0)
    path = tmp_path / "own.tally"
    hs.race(kernel, rows=50, width=40).add(np.zeros((300, 2))).save(path)
    upload = town.upload(dataset, path.read_bytes(), "tally")
    job = town.job(f"/datasets/{dataset}/tallies", {"upload": upload})
    assert job["state"] == "done", job
    requested = town.confirmed(dataset, job["result"]["tally"])
    assert town.job(f"/datasets/{dataset}/releases", requested)["state"] == "done"


@pytest.mark.parametrize(
    ("data", "format", "kind"),
    [
        (b"a,b\n1,x\n", "csv", "data-refused"),
        (b"a,b\n", "csv", "data-refused"),
        (b"\xff\xfe\x00", "csv", "data-refused"),
        (b"PAR1 but no more", "parquet", "data-refused"),
        (b"c,d\n1,2\n", "csv", "parameter-refused"),
    ],
)
def test_a_bad_upload_fails_its_job_and_tells_no_value(
    town: Town, data: bytes, format: str, kind: str
) -> None:
    dataset = town.dataset()
    upload = town.upload(dataset, data, format)
    job = town.job(f"/datasets/{dataset}/tallies", {"upload": upload, **SMALL})
    assert job["state"] == "failed"
    assert job["problem"]["type"].endswith(kind)
    assert town.settings.folder not in json.dumps(job)
    assert town.ok("olga", "GET", f"/datasets/{dataset}/tallies") == []
    town.ok("olga", "DELETE", f"/datasets/{dataset}/uploads/{upload}", 204)
    assert list(town.settings.path("uploads").iterdir()) == []


@pytest.mark.parametrize(("data", "format"), [(b"", "csv"), (b"nothing", "parquet"), (b"nothing", "tally")])
def test_an_upload_that_is_no_such_file_is_refused_at_once(town: Town, data: bytes, format: str) -> None:
    dataset = town.dataset()
    town.refused("olga", "POST", f"/datasets/{dataset}/uploads?format={format}", 422, content=data)
    assert list(town.settings.path("uploads").iterdir()) == []


def test_an_upload_beyond_the_limit_leaves_nothing(found_town: Callable[..., Town]) -> None:
    town = found_town(max_upload_bytes=1000)
    dataset = town.dataset()
    path = f"/datasets/{dataset}/uploads?format=csv"
    town.refused("olga", "POST", path, 413, content=b"a" * 1001)
    town.refused("olga", "POST", path, 413, content=iter([b"a" * 600, b"a" * 600]))
    assert list(town.settings.path("uploads").iterdir()) == []


def test_an_upload_that_waits_too_long_is_deleted(town: Town) -> None:
    dataset = town.dataset()
    town.upload(dataset)
    for hours, state, files in ((1.0, "waiting", 1), (1e-3 / 3600, "deleted", 0)):
        settings = replace(town.settings, upload_hours=hours)
        JobRunner(settings, Store.open(settings.place)).clean_up()
        listed = town.ok("olga", "GET", f"/datasets/{dataset}/uploads")
        assert [each["state"] for each in listed] == [state]
        assert len(list(settings.path("uploads").iterdir())) == files


def test_a_restarted_service_has_everything(town: Town) -> None:
    dataset = town.dataset()
    function = town.function(dataset)
    town.app = create_app(town.settings)
    assert town.ok("olga", "GET", "/functions")[0]["id"] == function


def test_progress_comes_as_events(town: Town) -> None:
    dataset = town.dataset()
    job = town.job(f"/datasets/{dataset}/tallies", {"upload": town.upload(dataset), **SMALL})
    answer = town.ask("olga", "GET", f"/jobs/{job['id']}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.startswith("event: job\ndata: {")
    assert json.loads(answer.text.split("data: ", 1)[1])["state"] == "done"


def test_tallies_are_encrypted_with_a_key(found_town: Callable[..., Town], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    town = found_town(tally_key_file=str(key))
    dataset = town.dataset()
    tally = town.tally(dataset)
    with pytest.raises(hs.errors.UsageError, match="encrypted"):
        hs.load_tally(town.settings.path("tallies", f"{tally}.tally"))
    requested = town.confirmed(dataset, tally)
    assert town.job(f"/datasets/{dataset}/releases", requested)["state"] == "done"
