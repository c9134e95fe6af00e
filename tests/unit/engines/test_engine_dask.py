"""Faults of the workers of a Dask cluster, and its collections."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.engine_cases import dask_client, dask_cluster
from tests.engine_files import counts, empty, one_process, write_files
from tests.exact_tallies import exact_table

import hushsum as hs
from hushsum.engines import _counting as file_parts
from hushsum.engines import dask as dask_clusters
from hushsum.engines._counting import Driver, Part
from hushsum.errors import DataRefused, UsageError

pytest.importorskip("distributed")

from hushsum.engines import dask as engine

pytestmark = pytest.mark.cluster
RECORDS = np.random.default_rng(2).normal(size=(400, 2))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_parts, "_LEAST_BYTES", 1)


def dies_once(marker: str, part: Any) -> Any:
    """Ends its own worker with signal 9 the first time."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return part
    os.kill(os.getpid(), signal.SIGKILL)


def noted(folder: str, part: Any) -> Any:
    """Leaves a file for every evaluation."""
    Path(folder, os.urandom(8).hex()).touch()
    return part


@pytest.fixture
def mortal() -> Iterator[Any]:
    with dask_cluster() as client:
        yield client


def test_a_killed_worker_is_replaced(tmp_path: Path, mortal: Any) -> None:
    import dask

    delayed = [
        dask.delayed(dies_once)(str(tmp_path / "died"), part) if number == 2 else dask.delayed(part)
        for number, part in enumerate(np.split(RECORDS, 8))
    ]
    filled = engine.tally(delayed, empty(), mortal)
    assert (tmp_path / "died").exists()
    assert counts(filled) == counts(empty().add(RECORDS))


def test_a_part_that_kills_every_worker_refuses_the_job(mortal: Any) -> None:
    import dask

    def dies(part: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    # One part alone: a task that merely waits on a worker that dies counts as a failure of it too.
    delayed = [dask.delayed(dies)(RECORDS)]
    with pytest.raises(DataRefused, match="partition 0 was not counted: the workers that read it died"):
        engine.tally(delayed, empty(), mortal)


@pytest.mark.usefixtures("small_parts")
def test_duplicated_tasks_count_once(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    submit, receive = engine._submit, Driver.receive
    received: list[bool] = []

    def submit_again(client: Any, task: Any, part: Part, key: str) -> Any:
        return submit(client, task, part, f"{key}-{len(received)}-{os.urandom(4).hex()}")

    def note(self: Driver, id: str, sealed: bytes) -> bool:
        received.append(receive(self, id, sealed))
        return received[-1]

    waiting: Any = Driver.waiting
    monkeypatch.setattr(engine, "_submit", submit_again)
    monkeypatch.setattr(Driver, "receive", note)
    monkeypatch.setattr(
        Driver, "waiting", property(lambda self: [part for part in waiting.fget(self) for _ in range(2)])
    )
    filled = engine.tally(files, empty(), dask_client())
    assert received.count(True) == received.count(False) > 2
    assert counts(filled) == counts(one_process(files, empty()))


def test_a_lazy_frame_that_is_collected_twice_counts_once(tmp_path: Path) -> None:
    import dask
    import dask.dataframe as dd

    parts = [
        dask.delayed(noted)(str(tmp_path), pd.DataFrame(part, columns=["b", "a"]))
        for part in np.split(RECORDS, 4)
    ]
    frame = dd.from_delayed(parts, meta=pd.DataFrame({"b": [0.0], "a": [0.0]}), verify_meta=False)
    assert len(frame.compute(scheduler="synchronous")) == len(RECORDS)
    filled = engine.tally(frame, empty(), dask_client())
    assert len(list(tmp_path.iterdir())) == 8
    assert counts(filled) == counts(empty().add(RECORDS[:, ::-1]))


def test_bags_of_lists_dicts_and_sets() -> None:
    import dask.bag

    expected = counts(empty().add(RECORDS[:40]))
    rows = dask.bag.from_sequence(RECORDS[:40].tolist(), npartitions=3)
    assert counts(engine.tally(rows, empty(), dask_client())) == expected
    named = dask.bag.from_sequence(
        [{"b": b, "a": a, "c": 1} for a, b in RECORDS[:40].tolist()], npartitions=3
    )
    assert counts(engine.tally(named, empty(), dask_client())) == expected
    sets = [[1, 2, 3], [2, 5], [7]]
    pattern = hs.race(hs.JaccardKernel(), rows=4, width=10)
    filled = engine.tally(dask.bag.from_sequence(sets, npartitions=2), pattern, dask_client())
    assert counts(filled) == counts(hs.race(hs.JaccardKernel(), rows=4, width=10).add(sets))


def test_one_record_does_not_decide_how_others_are_read() -> None:
    """The names and the order of fields are not taken from the first record of a partition."""
    records = [{"a": float(number), "b": -float(number)} for number in range(50)]
    turned = [{"b": 1.0, "a": 1.0}, *records]
    unnamed = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=12, width=40)
    driver = Driver(unnamed)
    driver.receive("0", engine._count_computed(driver.task, "0", "partition 0", records, None))
    with pytest.raises(DataRefused, match="must have the same fields in the same order"):
        driver.receive("1", engine._count_computed(driver.task, "1", "partition 1", turned, None))
    tables = []
    for partition in (records, turned):
        driver = Driver(empty())
        driver.receive("0", engine._count_computed(driver.task, "0", "partition 0", partition, ["a", "b"]))
        tables.append(exact_table(driver._total))
    assert np.abs(tables[1] - tables[0]).sum() == 12


def test_a_graph_that_fails_shows_no_record(caplog: pytest.LogCaptureFixture) -> None:
    import dask

    def fails(part: Any) -> Any:
        raise ValueError(f"secret-{part}")

    delayed = [dask.delayed(part) for part in np.split(RECORDS, 2)]
    delayed[1] = dask.delayed(fails)(17.25)
    with (
        caplog.at_level(logging.DEBUG, "hushsum"),
        pytest.raises(DataRefused, match="partition 1 could not be computed: ValueError") as caught,
    ):
        engine.tally(delayed, empty(), dask_client())
    assert caught.value.__context__ is None
    assert "secret" not in caplog.text


def test_sources_and_their_options_are_checked() -> None:
    import dask

    delayed = [dask.delayed(RECORDS)]
    with pytest.raises(UsageError, match="source must be files"):
        engine.tally([1, 2], empty(), dask_client())
    with pytest.raises(UsageError, match="checkpoint needs files"):
        engine.tally(delayed, empty(), dask_client(), checkpoint="x")
    with pytest.raises(TypeError, match="colums"):
        engine.tally(delayed, empty(), dask_client(), colums=["a"])  # type: ignore[call-arg]
    with (
        pytest.raises(UsageError, match="address must be that of a Dask scheduler"),
        dask_clusters.connected("x:1:2"),
    ):
        pass


def test_the_end_of_the_scheduler_refuses_the_job(files: list[str]) -> None:
    """Futures are cancelled when the client loses the scheduler."""
    client = dask_client()
    submitted = client.submit

    def cancelled(*arguments: Any, **more: Any) -> Any:
        future = submitted(*arguments, **more)
        future.cancel()
        return future

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "submit", cancelled)
        with pytest.raises(DataRefused, match="the scheduler of the cluster must run"):
            engine.tally(files, empty(), client)


def test_a_server_that_is_not_a_scheduler_is_refused() -> None:
    """Dask takes the first bytes of an answer for a length."""
    import dask

    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            pytest.raises(UsageError, match="address must be that of a Dask scheduler"),
            dask_clusters.connected(f"tcp://127.0.0.1:{server.getsockname()[1]}"),
        ):
            pass
        thread.join()


def test_the_local_cluster_is_set_up_for_counts(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The profiler is off, memory is not returned to the system at once, and Dask's settings are restored."""
    import dask

    def settings() -> tuple[Any, str | None, str | None]:
        return (
            dask.config.get("distributed.worker.profile.enabled"),
            os.environ.get("MALLOC_TRIM_THRESHOLD_"),
            os.environ.get("OMP_NUM_THREADS"),
        )

    # Clusters of other tests leave the environment of their workers in this process.
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    before = dask.config.get("distributed")
    with dask_clusters.local_cluster(1) as client:
        assert list(client.run(settings).values()) == [(False, None, "1")]
        assert counts(engine.tally(files, empty(), client)) == counts(one_process(files, empty()))
    assert dask.config.get("distributed") == before
    with pytest.raises(UsageError, match="workers must be"), dask_clusters.local_cluster(0):
        pass


def test_a_cancelled_count_continues(files: list[str], tmp_path: Path, small_parts: None) -> None:
    path = tmp_path / "x.checkpoint"
    reported: list[float] = []

    class Cancelled(Exception):
        pass

    def cancel(fraction: float | None) -> None:
        if fraction:
            raise Cancelled

    with pytest.raises(Cancelled):
        engine.tally(files, empty(), dask_client(), checkpoint=path, progress=cancel)
    filled = engine.tally(
        files, empty(), dask_client(), checkpoint=path, progress=lambda each: reported.append(each or 0.0)
    )
    assert reported[0] > 0.0
    assert counts(filled) == counts(one_process(files, empty()))
    assert not path.exists()
