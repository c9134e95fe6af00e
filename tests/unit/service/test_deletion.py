"""What an owner deletes and cancels, through the client."""

from __future__ import annotations

import io

import pytest

import hushsum as hs
from hushsum.errors import ServiceRefused
from tests.in_process_service import SMALL, Town, listening, records


def test_an_owner_cleans_up(town: Town) -> None:
    with listening(town.app) as url, hs.connect(url, town.tokens["olga"]) as olga:
        dataset = olga.create_dataset("payroll", epsilon=1.0)
        upload = dataset.upload(io.BytesIO(records()), format="csv")
        job = dataset._connection.submit(f"{dataset._path}/tallies", {"upload": upload, **SMALL}, "k")
        assert olga.cancel(job)["state"] == "cancelled"
        with pytest.raises(ServiceRefused, match="cancelled"):
            dataset.wait(job)
        assert [each["state"] for each in dataset.jobs()] == ["cancelled"]
        assert dataset._connection.submit(f"{dataset._path}/tallies", {"upload": upload, **SMALL}, "k") == job
        town.work()
        tally = dataset.wait(job)["tally"]
        with pytest.raises(ServiceRefused, match="finished"):
            olga.cancel(job)
        assert [each["id"] for each in dataset.tallies()] == [tally]
        dataset.delete_tally(tally)
        assert dataset.tallies() == []
        dataset.delete_upload(dataset.upload(io.BytesIO(records()), format="csv"))
        assert {each["state"] for each in dataset.uploads()} == {"used", "deleted"}
        assert dataset.write_off("released on paper", epsilon=0.25)["spent"]["epsilon"] == "1/4"
        assert olga.usage()["bytes"]["used"] == 0
        dataset.delete()
        assert olga.datasets() == []
        olga.sign_out()
    town.refused("olga", "GET", "/me", 401)
