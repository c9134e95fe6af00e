"""A release with all its troubles, and afterwards not a word of the records in logs or metrics."""

from __future__ import annotations

import json
import logging
import re

import pytest

from hushsum.service import logs
from tests.in_process_service import SECRET, SMALL, Town

KNOWN = {"at", "level", "event", "request", "method", "route", "status", "ms", "account", "client"} | {
    "job",
    "kind",
    "attempt",
    "error",
    "places",
}
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def test_logs_and_metrics_of_a_whole_day(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    dataset = town.dataset()
    function = town.function(dataset)
    path = f"/functions/{function}/query"
    town.ok("olga", "POST", path, json={"points": [[float(SECRET), 0.0]]})
    for bad in (f"a,b\n1,{SECRET}x\n", f"{SECRET},b\n1,2\n", f"a,b\n1,2,{SECRET}\n"):
        upload = town.upload(dataset, bad.encode())
        assert town.job(f"/datasets/{dataset}/tallies", {"upload": upload, **SMALL})["state"] == "failed"
    for who in ("olga", None):
        town.ask(who, "POST", f"{path}?level={SECRET}", json={"points": [[SECRET]]})
        town.ask(who, "GET", f"/{SECRET}", headers={"x-request-id": f" {SECRET} ", "x-odd": SECRET})
        town.ask(who, SECRET, "/me")

    # The client of these tests runs in the same process, and tells what it sends.
    ours = [record for record in caplog.records if not record.name.startswith("http")]
    lines = [json.loads(logs.JsonLines().format(record)) for record in ours]
    assert {line["event"] for line in lines} >= {"answered", "job started", "job failed", "job done"}
    assert set().union(*lines) <= KNOWN
    assert all(line["request"] for line in lines if line["event"] == "answered")
    assert all(line["job"] for line in lines if line["event"].startswith("job"))
    assert SECRET not in json.dumps(lines)

    metrics = town.ask(None, "GET", "/metrics").text
    assert SECRET not in metrics
    patterns = {*town.app.openapi()["paths"], "/openapi.json", "/assets/{name}", "unmatched"}
    for label, value in _LABEL.findall(metrics):
        if label == "route":
            assert value in patterns
        elif label == "method":
            assert value in ("GET", "POST", "PUT", "ANY")
        elif label == "status":
            assert value.isdigit()
        elif label == "state":
            assert value in ("queued", "running", "done", "failed")
        else:
            assert label == "le"
