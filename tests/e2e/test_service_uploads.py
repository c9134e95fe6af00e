"""Uploads that are broken, false, poisoned or far larger inside: refused in words; nothing left over."""

from __future__ import annotations

import gzip
import io
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.in_process_service import SECRET, SMALL, Town, records
from tests.ledger_fixtures import state
from tests.ledger_workers import start
from tests.service_workers import work_once

import hushsum as hs

__all__ = ["state"]

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

NUMBERS = np.random.default_rng(0).normal(0.0, 1.0, (300, 2))
NUMBERS[0, 0] = float(SECRET)


def table() -> Any:
    return pa.table({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]})


def parquet_of(content: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(content, sink, **options)
    return sink.getvalue()


def arrow_of(content: Any, compression: str | None = None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, content.schema, options=options) as file:
        file.write_table(content)
    return sink.getvalue()


def tally_of(folder: Path) -> bytes:
    path = folder / "some.tally"
    hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=20, width=20).add(NUMBERS).save(path)
    return path.read_bytes()


def whole(folder: Path) -> dict[str, bytes]:
    """One good file of each format."""
    return {
        "csv": records(300),
        "csv.gz": gzip.compress(records(300), mtime=0),
        "parquet": parquet_of(table()),
        "arrow": arrow_of(table()),
        "tally": tally_of(folder),
    }


def count(town: Town, dataset: str, data: bytes, format: str, **requested: Any) -> Any:
    """What became of an upload: None if it was refused at once, else its job. Nothing stays behind."""
    path = f"/datasets/{dataset}/uploads?format={format}"
    answer = town.ask("olga", "POST", path, content=data)
    assert SECRET not in answer.text
    if answer.status_code == 422:
        assert list(town.settings.path("uploads").iterdir()) == []
        return None
    assert answer.status_code == 201, answer.text
    upload = answer.json()["id"]
    body = {"upload": upload} if format == "tally" else {"upload": upload, **SMALL, **requested}
    job = town.job(f"/datasets/{dataset}/tallies", body)
    reported = json.dumps(job)
    assert SECRET not in reported
    assert town.settings.folder not in reported
    assert "Traceback" not in reported
    if job["state"] == "failed":
        assert job["problem"]["status"] in (422, 503), job
        town.ok("olga", "DELETE", f"/datasets/{dataset}/uploads/{upload}", 204)
    assert list(town.settings.path("uploads").iterdir()) == []
    assert [file for file in town.settings.path("tallies").iterdir() if file.suffix != ".tally"] == []
    return job


@pytest.mark.parametrize("number", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_damaged_files_are_refused(tmp_path: Path, number: int, capfd: pytest.CaptureFixture[str]) -> None:
    town = Town(tmp_path, requests_per_second=1e6, log_level="INFO")
    dataset = town.dataset()
    files = whole(tmp_path)
    chance = random.Random(number)
    outcomes = set()
    for _ in range(number):
        format = chance.choice(list(files))
        data = bytearray(files[format])
        damage = chance.randrange(4)
        if damage == 0:
            del data[chance.randrange(len(data)) :]
        elif damage == 1:
            for _ in range(chance.randrange(1, 20)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        elif damage == 2:
            at = chance.randrange(len(data))
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 40)))
        else:
            format = chance.choice(list(files))
        job = count(town, dataset, bytes(data), format)
        outcomes.add(None if job is None else job["state"])
    assert outcomes >= {None, "failed"}
    assert town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"] == "0"
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err


POISONED: dict[str, tuple[str, Callable[[], bytes], dict[str, Any]]] = {
    "NaN": ("csv", lambda: b"a,b\n1,NaN\n", {}),
    "infinity": ("parquet", lambda: parquet_of(pa.table({"a": [1.0], "b": [np.inf]})), {}),
    "nothing": ("parquet", lambda: parquet_of(pa.table({"a": [1.0, None], "b": [1.0, 2.0]})), {}),
    "text": ("arrow", lambda: arrow_of(pa.table({"a": [SECRET], "b": ["x"]})), {}),
    "no rows": ("arrow", lambda: arrow_of(table().slice(0, 0)), {}),
    "a name with a zero": ("csv", lambda: b"a\x00,b\n1,2\n", {}),
    "a name that is no text": ("csv", lambda: b"\xff\xfe,b\n1,2\n", {}),
    "a name that is a record": ("csv", lambda: f"{SECRET},b\n1,2\n".encode(), {}),
    "twice the same name": ("csv", lambda: b"a,a\n1,2\n", {"columns": ["a"]}),
    "ten thousand columns": (
        "csv",
        lambda: b",".join(b"c%d" % i for i in range(10_000)) + b"\n" + b"1," * 9999 + b"1\n",
        {"columns": ["a"]},
    ),
    "a line without an end": ("csv", lambda: b"a,b\n" + b"1" * (40 << 20), {}),
    "a header without an end": ("csv", lambda: b"a" * (3 << 20), {}),
    "a wrong number of fields": ("csv", lambda: f"a,b\n1,2,{SECRET}\n".encode(), {}),
    "quotes without an end": ("csv", lambda: f'a,b\n"{SECRET},2\n'.encode(), {}),
    "gzip in gzip": ("csv.gz", lambda: gzip.compress(gzip.compress(records(5))), {}),
    "a tally of another version": ("tally", lambda: b"HUSHTLY\x00" + b"\xff" * 200, {}),
}


@pytest.mark.parametrize("name", POISONED)
def test_poisoned_files_are_refused(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    town = Town(tmp_path)
    format, make, requested = POISONED[name]
    job = count(town, town.dataset(), make(), format, **requested)
    assert job is None or job["state"] == "failed", job
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err


def test_a_column_with_a_zero_cannot_be_requested_for(tmp_path: Path) -> None:
    town = Town(tmp_path)
    dataset = town.dataset()
    requested = {"upload": town.upload(dataset), **SMALL, "columns": ["a\x00", "b"]}
    headers = {"idempotency-key": "k"}
    reported = town.refused(
        "olga", "POST", f"/datasets/{dataset}/tallies", 422, json=requested, headers=headers
    )
    assert reported["faults"] == [{"at": "body/columns/0", "rule": "string_pattern_mismatch"}]


def test_a_tally_of_another_version(tmp_path: Path) -> None:
    town = Town(tmp_path)
    dataset = town.dataset()
    data = tally_of(tmp_path)
    for version in (0, 3, 255):
        changed = bytearray(data)
        changed[8] = version
        job = count(town, dataset, bytes(changed), "tally")
        assert job is None or job["state"] == "failed"


def zeros(size: int) -> bytes:
    """So many zeros, gzipped, without ever being in memory at once."""
    packer = zlib.compressobj(9, wbits=31)
    block = b"0" * (1 << 20)
    start = packer.compress(b"a,b\n")
    return start + b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "one endless number, gzipped": ("csv.gz", lambda: zeros(1 << 30)),
    "an endless name, gzipped": ("csv.gz", lambda: gzip.compress(b"a" * (1 << 28))),
    "a Parquet file of one value": (
        "parquet",
        lambda: parquet_of(pa.table({"a": np.zeros(20_000_000), "b": np.zeros(20_000_000)})),
    ),
    "a compressed Arrow batch": (
        "arrow",
        lambda: arrow_of(pa.table({"a": np.zeros(50_000_000), "b": np.zeros(50_000_000)}), "zstd"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_do_not_fill_the_memory(tmp_path: Path, name: str) -> None:
    """A worker that may use 600 MB counts or refuses what unfolds to more, and lives on."""
    town = Town(tmp_path, worker_memory_bytes=600 << 20)
    dataset = town.dataset()
    format, make = BOMBS[name]
    upload = town.upload(dataset, make(), format)
    headers = {"idempotency-key": "bomb"}
    requested = {"upload": upload, **SMALL}
    job = town.ok("olga", "POST", f"/datasets/{dataset}/tallies", 202, json=requested, headers=headers)["id"]
    peak = tmp_path / "peak"
    process = start(work_once, town.settings.for_worker(), None, None, str(peak))
    process.join(300)
    assert process.exitcode == 0
    assert int(peak.read_text()) < 800 << 20
    ended = town.ok("olga", "GET", f"/jobs/{job}")
    assert ended["state"] == "done" or ended["problem"]["status"] in (422, 503), ended
    files = list(town.settings.path("uploads").iterdir())
    assert len(files) == (ended["state"] == "failed"), "only a refused upload waits for its owner"
