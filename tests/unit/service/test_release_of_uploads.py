"""An upload is planned, counted and released in one request, as by ``hs.release`` and ``hushsum release``."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import hushsum as hs
from hushsum.cli.main import application
from hushsum.errors import UsageError
from hushsum.service import store
from hushsum.service.jobs import job_runner
from tests.in_process_service import Town, listening

NAMES = "abcdefgh"
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "landmarks, which no tally counts": (8, {"bandwidth": 0.2, "bounds": [0, 1], "epsilon": 1.0}),
    "a grid": (2, {"bandwidth": 0.2, "bounds": [0, 1], "epsilon": 1.0}),
    "a grid on steps": (2, {"bandwidth": 0.2, "bounds": [0, 1], "epsilon": 1.0, "steps": [0.01]}),
    "a method": (2, {"bandwidth": 0.2, "bounds": [0, 1], "epsilon": 1.0, "method": "fourier_features"}),
    "replace": (4, {"bandwidth": 0.3, "bounds": [0, 1], "epsilon": 1.0, "relation": "replace"}),
    "hash rows": (3, {"kernel": "euclidean", "bandwidth": 0.4, "epsilon": 1.0, "rows": 200, "width": 300}),
}


def table(dim: int) -> bytes:
    records = np.random.default_rng(0).uniform(0.2, 0.8, (600, dim))
    buffer = io.BytesIO()
    np.savetxt(buffer, records, delimiter=",", header=",".join(NAMES[:dim]), comments="")
    return buffer.getvalue()


def requested(town: Town, dataset: str, dim: int = 2, **more: Any) -> dict[str, Any]:
    terms = {"bandwidth": 0.2, "bounds": [0, 1], "epsilon": 1.0, "records": 600, **more}
    return {"upload": town.upload(dataset, table(dim)), "name": "f", "columns": list(NAMES[:dim]), **terms}


def confirmed(town: Town, dataset: str, body: dict[str, Any]) -> dict[str, Any]:
    claim = town.ok("olga", "POST", f"/datasets/{dataset}/claims", json=body)
    return {**body, "confirm": claim["confirm"]}


def option_of_command(name: str, value: Any) -> str:
    if name == "bounds":
        return f"--bounds {value[0]}:{value[1]}"
    return f"--{name.replace('_', '-')} {value[0] if isinstance(value, list) else value}"


@pytest.mark.parametrize("case", CASES)
def test_plan_and_release_are_the_same_on_every_surface(case: str, town: Town, tmp_path: Path) -> None:
    dim, terms = CASES[case]
    steps = {"steps": terms["steps"][0]} if "steps" in terms else {}
    planned = hs.plan(records=600, dim=dim, **{**terms, **steps, "bounds": terms.get("bounds") and (0, 1)})
    source = tmp_path / "x.csv"
    source.write_bytes(table(dim))
    output = ["-o", str(tmp_path / "f.hush"), "-y", "--json"]
    words = " ".join(option_of_command(*each) for each in terms.items()).split()
    command = ["release", str(source), "--records", "600", *words, *output]
    result = CliRunner().invoke(application("release"), command)
    assert result.exit_code == 0, result.output
    by_command = json.loads(result.stdout)

    dataset = town.dataset(epsilon=2.0, relation=terms.get("relation", "add/remove"))
    upload = town.upload(dataset, table(dim))
    body = {"upload": upload, "name": "f", "columns": list(NAMES[:dim]), "records": 600, **terms}
    shown = town.ok("olga", "POST", f"/datasets/{dataset}/claims", json=body)
    job = town.job(f"/datasets/{dataset}/releases", {**body, "confirm": shown["confirm"]})
    assert job["state"] == "done", job
    facts = town.ok("olga", "GET", f"/functions/{job['result']['function']}")["facts"]

    assert shown["option"]["method"] == planned.best.method == by_command["method"]
    assert shown["option"]["error"] == pytest.approx(planned.best.error) == by_command["predicted_error"]
    assert shown["option"]["settings"] == json.loads(json.dumps(planned.best.as_json()))["settings"]
    assert facts["claim"] == by_command["claim"] == shown["claim"]
    listed = {"epsilon": [1.0], **({"rows": [terms["rows"]]} if "rows" in terms else {})}
    planning = {"records": 600, "dim": dim, **terms, **listed}
    by_page = town.ok("olga", "POST", f"/datasets/{dataset}/plans", json=planning)
    best = next(each for each in by_page["options"] if each["best"])
    assert (best["method"], best["error"]) == (planned.best.method, pytest.approx(planned.best.error))


def test_a_frame_by_the_client(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits for jobs; here each is run when its state is requested."""
    dataset = town.dataset(epsilon=5.0)
    frame = pd.read_csv(io.BytesIO(table(2)))
    terms: dict[str, Any] = {"columns": ["a", "b"], "bandwidth": 0.2, "bounds": (0, 1), "epsilon": 1.0}
    monkeypatch.setattr("hushsum.client._client.time.sleep", lambda seconds: town.work())
    with listening(town.app) as url, hs.connect(url, town.tokens["olga"]) as service:
        data = service.dataset(dataset)
        upload = data.upload(frame)
        assert data.claim(upload, "f", **terms)["option"]["method"] == "grid"
        f = data.release(upload, "f", idempotency_key="once", **terms)
        assert data.release(upload, "f", idempotency_key="once", **terms).id == f.id
        assert f.count == pytest.approx(600, abs=60)
        assert data.release(frame, "g", method="fourier_features", **terms).columns == ("a", "b")
        assert data.budget()["spent"]["epsilon"] == "2"
        with pytest.raises(UsageError, match="bandwith"):
            data.claim(upload, "f", bandwith=1.0)
        with pytest.raises(UsageError, match="bandwidth must be a number above 0"):
            data.claim(upload, "f", bandwidth=0.0)


def test_an_upload_is_used_once(town: Town) -> None:
    dataset = town.dataset(epsilon=5.0)
    body = confirmed(town, dataset, requested(town, dataset))
    file = town.settings.path("uploads", f"{body['upload']}.csv")
    assert file.exists()
    first = town.job(f"/datasets/{dataset}/releases", body, key="once")
    assert first["state"] == "done"
    assert not file.exists()
    assert town.job(f"/datasets/{dataset}/releases", body, key="once") == first
    path = f"/datasets/{dataset}/releases"
    town.refused("olga", "POST", path, 422, json=body, headers={"idempotency-key": "twice"})
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "1"


@pytest.mark.parametrize("dim", [2, 8])
@pytest.mark.parametrize("place", ["describe_file", "_functions.add", "_datasets.end_upload"])
def test_a_release_that_died_is_finished_and_paid_once(
    dim: int, place: str, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = town.dataset(epsilon=5.0)
    body = confirmed(town, dataset, requested(town, dataset, dim))
    with monkeypatch.context() as patch:
        patch.setattr(*_fails(place))
        failed = town.job(f"/datasets/{dataset}/releases", body, key="once")
    assert failed["state"] == "failed"
    done = town.job(f"/datasets/{dataset}/releases", body, key="once")
    assert done["state"] == "done", done
    assert not list(town.settings.path("uploads").glob("*"))
    ledger = town.ok("olga", "GET", f"/datasets/{dataset}/ledger")
    assert [each["step"] for each in ledger["history"]] == ["published"]
    assert ledger["status"]["spent"]["epsilon"] == "1"


def _fails(place: str) -> tuple[Any, str, Callable[..., None]]:
    def fail(*_: object, **__: object) -> None:
        raise OSError("killed")

    classes: dict[str, Any] = {"_functions": store.Functions, "_datasets": store.Datasets}
    owner, found, name = place.partition(".")
    return (classes[owner], name, fail) if found else (job_runner, place, fail)


def test_nothing_is_spent_on_records_that_are_refused(town: Town) -> None:
    dataset = town.dataset()
    outside = requested(town, dataset, bounds=[5, 6])
    job = town.job(f"/datasets/{dataset}/releases", confirmed(town, dataset, outside))
    assert job["state"] == "failed"
    garbage = {**requested(town, dataset), "upload": town.upload(dataset, b"a,b\nno,number\n")}
    job = town.job(f"/datasets/{dataset}/releases", confirmed(town, dataset, garbage))
    assert job["state"] == "failed"
    assert "number" not in json.dumps(job["problem"]["detail"]).replace("numbers", "")
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "0"


def test_an_owner_may_read_warnings_before_anything_is_spent(town: Town) -> None:
    """Bounds that are the extremes of the records are warned about once these were read."""
    dataset = town.dataset(epsilon=5.0)
    numbers = np.loadtxt(io.BytesIO(table(2)), delimiter=",", skiprows=1)
    pairs = np.column_stack([numbers.min(axis=0), numbers.max(axis=0)]).tolist()
    body = confirmed(town, dataset, requested(town, dataset, bounds=pairs))
    path = f"/datasets/{dataset}/releases"
    stopped = town.job(path, {**body, "stop_at_warnings": True})
    assert stopped["state"] == "failed"
    assert stopped["problem"]["type"].endswith(":warnings")
    assert stopped["problem"]["warnings"]
    spent = town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"]
    assert (spent, len(list(town.settings.path("uploads").glob("*")))) == ("0", 1)
    # The same claim is confirmed: the flag changes nothing of the release.
    done = town.job(path, body)
    assert done["state"] == "done", done
    assert done["result"]["warnings"] == stopped["problem"]["warnings"]


def test_persons_and_public_rows(town: Town) -> None:
    dataset = town.dataset(epsilon=5.0, unit="person", max_per_unit=2)
    records = b"a,b,who\n" + b"".join(b"0.%d,0.5,%d\n" % (i % 9, i // 2) for i in range(600))
    upload, public = town.upload(dataset, records), town.upload(dataset, table(2)[:4000].rsplit(b"\n", 1)[0])
    body = {
        "upload": upload,
        "public": public,
        "name": "f",
        "columns": ["a", "b"],
        "unit_column": "who",
        "max_per_unit": 2,
        "epsilon": 1.0,
    }
    job = town.job(f"/datasets/{dataset}/releases", confirmed(town, dataset, body))
    assert job["state"] == "done", job
    claim = town.ok("olga", "GET", f"/functions/{job['result']['function']}")["facts"]["claim"]
    assert claim["unit"] == "person"
    assert claim["assumptions"]


@pytest.mark.parametrize(
    "change",
    [
        {"columns": None},
        {"tally": "ta_0123456789abcdef"},
        {"upload": None},
        {"upload": None, "tally": "ta_0123456789abcdef"},
        {"upload": "up_0123456789abcdef"},
        {"method": "no such method"},
        {"rows": 100_000, "width": 100_000, "kernel": "euclidean"},
    ],
)
def test_what_is_refused_before_anything_is_read(change: dict[str, Any], town: Town) -> None:
    dataset = town.dataset()
    body = {**requested(town, dataset), **change}
    town.refused("olga", "POST", f"/datasets/{dataset}/claims", 422, json=body)


def test_the_confirmed_claim_is_the_one_that_is_paid(town: Town) -> None:
    dataset = town.dataset()
    body = {**confirmed(town, dataset, requested(town, dataset)), "method": "fourier_features"}
    path, headers = f"/datasets/{dataset}/releases", {"idempotency-key": "k"}
    refused = town.refused("olga", "POST", path, 409, json=body, headers=headers)
    assert refused["type"].endswith("not-confirmed")
