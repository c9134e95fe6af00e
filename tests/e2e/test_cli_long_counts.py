"""``hushsum tally`` that is killed or interrupted, and continues; and its engines."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.e2e.cli_process import COMMAND, Shell, environment
from tests.engine_files import counts
from tests.exact_tallies import exact_state

import hushsum as hs
from hushsum.tally import Tally

OPTIONS = ["--bandwidth", "1", "--rows", "1000", "--width", "100", "--threads", "1"]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory, quick_command: Path) -> Path:
    folder = tmp_path_factory.mktemp("long")
    table = np.random.default_rng(5).normal(size=(300_000, 2))
    np.savetxt(folder / "x.csv", table, "%.6f", ",", header="a,b", comments="")
    ended = Shell(folder, [quick_command]).run("tally", "x.csv", *OPTIONS, "-o", "whole.tally")
    assert ended.code == 0
    return folder


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=str
)
def test_a_count_continues_after_a_signal(
    records: Path, quick_command: Path, number: signal.Signals, code: int
) -> None:
    command = ["tally", "x.csv", *OPTIONS, "-o", "x.tally", "--checkpoint", "x.checkpoint"]
    process = subprocess.Popen(
        [*COMMAND, *command, "--checkpoint-every", "0"],
        cwd=records,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while not (records / "x.checkpoint").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == code
    if number is not signal.SIGKILL:
        assert "the count so far is in x.checkpoint; the same command continues it" in err.decode()
    assert not (records / "x.tally").exists()
    ended = Shell(records, [quick_command]).run(*command)
    assert ended.code == 0
    assert counts(hs.load_tally(records / "x.tally")) == counts(hs.load_tally(records / "whole.tally"))
    assert not (records / "x.checkpoint").exists()
    (records / "x.tally").unlink()


def test_processes_count_the_same(records: Path) -> None:
    ended = Shell(records).run(
        "tally", "x.csv", *OPTIONS, "--engine", "processes", "--workers", "2", "-o", "p.tally"
    )
    assert ended.code == 0, ended.err
    assert counts(hs.load_tally(records / "p.tally")) == counts(hs.load_tally(records / "whole.tally"))


def test_a_driver_that_is_killed_is_restarted(records: Path) -> None:
    """Its workers end with it, and what it had merged is not counted again."""
    folder = records / "driver"
    folder.mkdir()
    for name in ("x.csv", "y.csv"):
        (folder / name).write_bytes((records / "x.csv").read_bytes())
    command = ["tally", "x.csv", "y.csv", *OPTIONS, "--engine", "processes", "--workers", "1"]
    command += ["-o", "x.tally", "--checkpoint", "x.checkpoint"]
    process = subprocess.Popen(
        [*COMMAND, *command, "--checkpoint-every", "0"], cwd=folder, env=environment(), stderr=subprocess.PIPE
    )
    while not (folder / "x.checkpoint").exists():
        assert process.poll() is None
        time.sleep(0.01)
    workers = [
        each
        for each in psutil.Process(process.pid).children()
        if any("process_worker" in word for word in each.cmdline())
    ]
    process.kill()
    assert process.wait() == -9
    process.communicate()
    assert len(workers) == 1
    psutil.wait_procs(workers, timeout=300)
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in workers)
    assert Shell(folder).run(*command).code == 0
    twice = hs.load_tally(records / "whole.tally").merge(again(records / "whole.tally"))
    assert counts(hs.load_tally(folder / "x.tally")) == counts(twice)


def again(path: Path) -> Tally:
    """The same counts as those of another tally, as if counted from a copy of its records."""
    found = hs.load_tally(path)
    state = exact_state(found)
    return Tally._restore(
        found.basis, found.kernel, table=state["table"], count=state["count"], moves=state["moves"]
    )


def test_workers_need_an_engine(records: Path, quick_command: Path) -> None:
    ended = Shell(records, [quick_command]).run("tally", "x.csv", *OPTIONS, "--workers", "2", "-o", "p.tally")
    assert ended.code == 2
    assert "--workers goes with --engine" in ended.err
