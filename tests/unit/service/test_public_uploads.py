"""Uploads that their owner declares public: tallies, plans, releases and models made with them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.models import PUBLIC_PARAMETERS
from hushsum.releases import PUBLIC_SAMPLE, CombinedFunction
from tests.in_process_service import SMALL, Town, records

MODEL = {"name": "near", "model": "neighbors", "columns": ["a", "b"], "epsilon": 0.5}


def sample(columns: str = "a,b", number: int = 40) -> bytes:
    points = np.random.default_rng(1).normal([1.0, -2.0], [1.0, 0.5], (number, 2))
    return "\n".join([columns, *(f"{a:.3f},{b:.3f}" for a, b in points), ""]).encode()


@pytest.fixture
def dataset(town: Town) -> str:
    return town.dataset(epsilon=5.0)


def model_job(town: Town, dataset: str, **requested: Any) -> Any:
    body = {**MODEL, "settings": {"rows": 50, "width": 50}, **requested}
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/models/claims", json=body)
    assert claim["claim"]["assumptions"] == [PUBLIC_PARAMETERS]
    job = town.job(f"/datasets/{dataset}/models", {**body, "confirm": claim["confirm"]})
    assert job["state"] == "done", job
    return town.ok("olga", "GET", f"/functions/{job['result']['function']}")


def released(town: Town, dataset: str, body: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/claims", json=body)
    job = town.job(f"/datasets/{dataset}/releases", {**body, "confirm": claim["confirm"]})
    assert job["state"] == "done", job
    file = town.ask("olga", "GET", f"/functions/{job['result']['function']}/file").content
    return claim["claim"], hs.load(io.BytesIO(file))


def test_a_model_takes_bounds_and_settings_from_it(town: Town, dataset: str) -> None:
    public = town.upload(dataset, sample())
    facts = model_job(town, dataset, upload=town.upload(dataset), public=public)["facts"]["model"]
    (low, high), _ = facts["bounds"]
    assert -5.0 < low < high < 8.0
    # It is kept for further releases; the records are not.
    states = {each["id"]: each["state"] for each in town.ok("olga", "GET", f"/datasets/{dataset}/uploads")}
    assert states[public] == "waiting"
    assert sorted(states.values()) == ["used", "waiting"]


def test_a_release_is_combined_with_it(town: Town, dataset: str) -> None:
    public = town.upload(dataset, sample("b,a")[:4] + sample()[4:])
    body = {
        "tally": town.tally(dataset),
        "name": "pay",
        "epsilon": 0.5,
        "public": town.upload(dataset, sample()),
    }
    claim, function = released(town, dataset, body)
    assert claim["assumptions"] == [PUBLIC_SAMPLE]
    assert isinstance(function, CombinedFunction)
    assert len(function.points) == 40
    assert function.claim.assumptions == (PUBLIC_SAMPLE,)
    _, turned = released(town, dataset, {**body, "public": public})
    assert turned.points[:, 0].mean() < 0.0 < function.points[:, 0].mean()


def test_a_tally_takes_bandwidth_and_bounds_from_it_and_every_release_says_so(
    town: Town, dataset: str
) -> None:
    public = town.upload(dataset, sample())
    left = {name: value for name, value in SMALL.items() if name not in ("bandwidth", "bounds")}
    request = {"upload": town.upload(dataset), **left, "public": public}
    job = town.job(f"/datasets/{dataset}/tallies", request)
    assert job["state"] == "done", job
    tally = job["result"]["tally"]
    (listed,) = town.ok("olga", "GET", f"/datasets/{dataset}/tallies")
    assert listed["facts"]["bounds"] is not None
    claim, function = released(town, dataset, {"tally": tally, "name": "pay", "epsilon": 0.5})
    assert claim["assumptions"] == [PUBLIC_SAMPLE]
    assert function.claim.assumptions == (PUBLIC_SAMPLE,)
    assert not isinstance(function, CombinedFunction)


def test_a_plan_is_made_from_it(town: Town, dataset: str) -> None:
    body = {"records": 1000, "dim": 2, "epsilon": [1.0], "public": town.upload(dataset, sample())}
    assert town.ok("olga", "POST", f"/datasets/{dataset}/plans", json=body)["options"]


def test_what_is_not_a_public_upload_is_refused(town: Town, dataset: str) -> None:
    records_upload, tally = town.upload(dataset), town.tally(dataset)
    other = town.upload(town.dataset("otto", "his", epsilon=1.0), sample(), who="otto")
    counted = town.ok("olga", "GET", f"/datasets/{dataset}/uploads")[-1]["id"]
    assert counted != records_upload
    release = {"tally": tally, "name": "pay", "epsilon": 0.5}
    claims = f"/datasets/{dataset}/claims"
    for wrong in (other, counted, "up_0123456789abcdef"):
        for path, body in (
            (claims, release),
            (f"/datasets/{dataset}/models/claims", {**MODEL, "upload": records_upload}),
            (f"/datasets/{dataset}/plans", {"records": 9, "dim": 2, "epsilon": [1.0]}),
        ):
            problem = town.refused("olga", "POST", path, 422, json={**body, "public": wrong})
            assert "public must be an upload" in problem["detail"]
    same = {**MODEL, "upload": records_upload, "public": records_upload}
    assert (
        "private records"
        in town.refused("olga", "POST", f"/datasets/{dataset}/models/claims", 422, json=same)["detail"]
    )
    missing = {**MODEL, "upload": records_upload}
    assert (
        "bounds"
        in town.refused("olga", "POST", f"/datasets/{dataset}/models/claims", 422, json=missing)["detail"]
    )


def test_the_same_bytes_are_not_public_under_another_name(town: Town, dataset: str) -> None:
    upload, public = town.upload(dataset, records()), town.upload(dataset, records())
    body = {**MODEL, "upload": upload, "public": public, "bounds": [[-5, 5]]}
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/models/claims", json=body)
    job = town.job(f"/datasets/{dataset}/models", {**body, "confirm": claim["confirm"]})
    assert job["state"] == "failed"
    assert "public must be a file of public records" in job["problem"]["detail"]
    job = town.job(f"/datasets/{dataset}/tallies", {"upload": upload, **SMALL, "public": public})
    assert job["state"] == "failed"
    status = town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]
    assert float(status["spent"]["epsilon"]) == 0.0


def test_it_is_not_deleted_while_a_job_needs_it(town: Town, dataset: str) -> None:
    public = town.upload(dataset, sample())
    headers = {"idempotency-key": "waits"}
    body = {"upload": town.upload(dataset), **SMALL, "public": public}
    town.ok("olga", "POST", f"/datasets/{dataset}/tallies", 202, json=body, headers=headers)
    town.refused("olga", "DELETE", f"/datasets/{dataset}/uploads/{public}", 409)
    town.work()
    town.ok("olga", "DELETE", f"/datasets/{dataset}/uploads/{public}", 204)


def test_exact_mode_takes_none(town: Town, dataset: str) -> None:
    body = {
        **MODEL,
        "model": "density",
        "mode": "exact",
        "delta": 1e-6,
        "upload": town.upload(dataset),
        "public": town.upload(dataset, sample()),
    }
    problem = town.refused("olga", "POST", f"/datasets/{dataset}/models/claims", 422, json=body)
    assert "public must be left out in exact mode" in problem["detail"]
