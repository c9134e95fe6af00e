"""The log with names and filters; made-up records; names in any script; the client of shared links."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import ServiceRefused, UsageError
from hushsum.service.http import SAMPLE_NAME, sample_records
from hushsum.service.settings import Settings
from tests.in_process_service import Town, listening


def small(town: Town, name: str = "Größe und Gewicht") -> tuple[str, str]:
    """A dataset and a function of Olga's, made here and not by a worker."""
    dataset = town.dataset(name=name)
    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=20, width=50)
    records = np.random.default_rng(0).normal(0, 1, (300, 2))
    return dataset, town.publish(dataset, name, tally.add(records).release(epsilon=0.5))


def test_the_log_names_what_its_ids_stand_for(town: Town) -> None:
    dataset, function = small(town)
    town.ok("olga", "PUT", f"/functions/{function}/grants/anna", json={})
    token = town.ok("olga", "POST", "/tokens", 201, json={"label": "nächtlich"})
    upload = town.upload(dataset)
    link = town.ok("olga", "POST", f"/functions/{function}/shares", 201, json={"label": "Zeitung"})
    named = {
        line["object"]: (line["account_name"], line["object_name"])
        for line in town.ok("admin", "GET", "/log?limit=1000")
    }
    assert named[dataset] == ("olga", "Größe und Gewicht")
    assert named[function] == (None, "Größe und Gewicht"), "the test made it, not an account"
    assert named[f"{function} {town.ids['anna']}"] == ("olga", "Größe und Gewicht, anna")
    assert named[token["id"]] == ("olga", "nächtlich (olga)")
    assert named[upload] == ("olga", "Größe und Gewicht")
    assert named[f"{function} {link['id']}"] == ("olga", "Zeitung (Größe und Gewicht)")
    assert named[town.ids["otto"]] == ("admin", "otto")
    town.ok("olga", "DELETE", f"/datasets/{dataset}", 204)
    gone = town.ok("admin", "GET", "/log?action=dataset%20created&limit=1000")[-1]
    assert gone["object_name"] is None


def test_the_log_is_filtered_and_read_from_either_end(town: Town) -> None:
    town.dataset(name="one")
    town.dataset("otto", name="two")
    lines = town.ok("admin", "GET", "/log?limit=1000")
    newest = town.ok("admin", "GET", "/log?limit=1000&order=newest")
    assert newest == lines[::-1]
    middle = lines[len(lines) // 2]["sequence"]
    before = town.ok("admin", "GET", f"/log?order=newest&before={middle}&limit=2")
    assert [line["sequence"] for line in before] == [middle - 1, middle - 2]
    made = town.ok("admin", "GET", f"/log?action=dataset&account={town.ids['otto']}")
    assert [(line["action"], line["object_name"]) for line in made] == [("dataset created", "two")]
    today = lines[-1]["at"][:10]
    assert town.ok("admin", "GET", f"/log?since={today}&until={today}&limit=1000")[-1] == lines[-1]
    assert town.ok("admin", "GET", "/log?until=2020-01-01") == []
    assert town.ok("admin", "GET", "/log?action=%25") == [], "a percent sign is no wildcard"
    for wrong in ("since=yesterday", "order=random", "before=-1", "action=", "limit=1001"):
        town.refused("admin", "GET", f"/log?{wrong}", 422)


def test_sample_records_are_the_same_everywhere_and_within_their_bounds(town: Town) -> None:
    first = town.ok("olga", "POST", "/datasets/samples", 201)
    rows = [line.split(",")[:2] for line in sample_records().decode().splitlines()[1:]]
    values = np.array(rows, dtype=float)
    low, high = np.array(first["bounds"]).T
    assert len(values) == first["records"] == 20_000
    assert (values >= low).all()
    assert (values <= high).all()
    assert first["dataset"]["name"] == SAMPLE_NAME
    assert first["upload"]["size"] == len(sample_records())
    assert town.ok("olga", "POST", "/datasets/samples", 201) == first, "neither is made twice"
    assert len(town.ok("olga", "GET", "/datasets")) == 1
    assert town.ok("otto", "POST", "/datasets/samples", 201)["dataset"]["id"] != first["dataset"]["id"]


@pytest.mark.parametrize(
    "name", ["Gehälter 2026", "給与", "зарплаты", "O'Brien & Söhne (Köln)", "رواتب", "वेतन", "Cafe\u0301"]
)
def test_names_are_in_any_script(town: Town, name: str) -> None:
    made = town.ok("olga", "POST", "/datasets", 201, json={"name": name, "epsilon": 1.0})
    assert made["name"] == name.replace("e\u0301", "é")


@pytest.mark.parametrize(
    "name",
    ["", " x", "x ", "-x", "a\nb", "a\x00b", "a\u202eb", "a\u200bb", "a<b", "a/b", "🙂", "a\ud800", "x" * 81],
)
def test_names_that_deceive_are_refused(town: Town, name: str) -> None:
    body = '{"epsilon": 1.0, "name": "%s"}' % "".join(  # noqa: UP031
        each if " " <= each < "\x7f" else f"\\u{ord(each):04x}" for each in name if ord(each) < 0x10000
    )
    if not name.isascii() and max(map(ord, name)) > 0xFFFF:
        body = '{"epsilon": 1.0, "name": "\\ud83d\\ude42"}'
    headers = {"content-type": "application/json"}
    town.refused("olga", "POST", "/datasets", 422, content=body.encode(), headers=headers)


def test_sharing_is_on_or_off() -> None:
    assert Settings().sharing_is_on
    assert not Settings(sharing="off").sharing_is_on
    with pytest.raises(UsageError, match="HUSHSUM_SHARING"):
        Settings(sharing="perhaps")


def test_a_link_is_opened_from_python(town: Town) -> None:
    _, id = small(town)
    with listening(town.app) as url:
        owner = hs.connect(url, town.tokens["olga"])
        function = owner.function(id)
        dataset = owner.datasets()[0]
        link = dataset.share(function, label="for Python", download=True, days=2)
        assert [each["label"] for each in dataset.shares(function)] == ["for Python"]
        shared = hs.client.open_link(url + link["path"])
        assert isinstance(shared, hs.client.RemoteFunction)
        points = np.random.default_rng(1).normal(0, 1, (5001, 2))
        np.testing.assert_array_equal(shared.query(points).value, function.query(points).value)
        assert shared.local().claim == function.claim
        assert link["path"].removeprefix("/shared/") not in repr(shared)
        owner.revoke_share(link["id"])
        with pytest.raises(ServiceRefused, match="nothing here"):
            shared(points[:1])
        with pytest.raises(ServiceRefused, match="nothing here"):
            hs.client.open_link(url + link["path"])
    for wrong in ("https://x.example/", "https://x.example/shared/", "https://x.example/shared/a/../b"):
        with pytest.raises(UsageError, match="shared link"):
            hs.client.open_link(wrong)
    with pytest.raises(UsageError, match="https"):
        hs.client.open_link("http://x.example/shared/abc")
