"""The thread pool: the same results from any number of threads, callers and processes, and a clean end."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hushsum import _native

RECORDS = np.random.default_rng(1).standard_normal((3000, 5), dtype=np.float32)
FREQUENCIES = np.random.default_rng(2).standard_normal((100, 5), dtype=np.float32)

PRELUDE = """
import multiprocessing, os, sys, threading
import numpy as np
from hushsum import _native

records = np.random.default_rng(1).standard_normal((3000, 5), dtype=np.float32)
features = _native.FeatureMap(np.random.default_rng(2).standard_normal((100, 5), dtype=np.float32))

def count(threads):
    table = np.zeros((100, 2), np.int64)
    features.add(records, table, 1, threads)
    return table

def agrees(_=None):
    return bool((count(4) == count(1)).all())

def child_agrees():
    process = os.fork()
    if process == 0:
        os._exit(0 if agrees() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
"""


def counted(threads: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    table = np.zeros((100, 2), np.int64)
    _native.FeatureMap(FREQUENCIES).add(RECORDS, table, 1, threads)
    return table


def run(program: str) -> None:
    """Run a program in a process of its own, which must end by itself and report nothing."""
    # Newer versions of Python warn about every fork of a process with several threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PRELUDE + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("parts", [1, 2, 3, 17, 1000])
def test_every_part_runs_once(parts: int) -> None:
    assert _native.pool_calls(parts, 7, 50) == _native.thread_starts(1, 7, 50 * parts)


def test_threads_of_python_call_at_once() -> None:
    expected = counted(1)
    with ThreadPoolExecutor(8) as callers:
        tables = list(callers.map(counted, [1, 2, 3, 5, 16] * 16))
    for table in tables:
        np.testing.assert_array_equal(table, expected)


def test_many_small_calls() -> None:
    features = _native.FeatureMap(FREQUENCIES)
    table = np.zeros((100, 2), np.int64)
    for first in range(0, 3000, 3):
        features.add(RECORDS[first : first + 3], table, 1, 2)
    np.testing.assert_array_equal(table, counted(2))
    assert _native.pool_calls(2, 1, 20_000) == _native.thread_starts(1, 1, 40_000)


def test_an_exception_reaches_the_caller_and_leaves_the_pool_usable() -> None:
    out = np.ones(1 << 17, np.int64)

    def decide(index: int, magnitude: int, acceptance: int) -> int:
        raise ZeroDivisionError

    # So wide a margin leaves every draw to Python.
    with pytest.raises(ZeroDivisionError):
        _native.fill_laplace(_native.StreamKey(bytes(32)), 0, out, 100.0, 0.0, 1e9, 4, decide)
    assert not out.any()
    np.testing.assert_array_equal(counted(4), counted(1))


def test_a_child_of_fork_makes_its_own_pool() -> None:
    run("""
sys.exit(not (agrees() and child_agrees() and child_agrees() and agrees()))
""")


def test_a_fork_while_other_threads_compute() -> None:
    run("""
over = threading.Event()
def work():
    while not over.is_set():
        count(2)
        _native.pool_calls(3, 10, 100)
workers = [threading.Thread(target=work) for _ in range(3)]
for worker in workers: worker.start()
good = all([child_agrees() for _ in range(20)])
over.set()
for worker in workers: worker.join()
sys.exit(not (good and agrees()))
""")


def test_worker_processes_by_fork() -> None:
    run("""
assert agrees()
with multiprocessing.get_context("fork").Pool(2) as pool:
    good = all(pool.map(agrees, range(6)))
sys.exit(not (good and agrees()))
""")


def test_worker_processes_by_spawn() -> None:
    run("""
assert agrees()
with multiprocessing.get_context("spawn").Pool(2) as pool:
    there = pool.apply(eval, ("__import__('hushsum._native')._native.pool_calls(4, 10, 100)",))
sys.exit(there != _native.pool_calls(4, 10, 100))
""")


@pytest.mark.parametrize(
    "last",
    [
        "count(4)",
        "threading.Thread(target=lambda: [count(4) for _ in range(10**6)], daemon=True).start()",
        "import atexit; atexit.register(agrees); agrees()",
        "threading.Thread(target=lambda: [count(4) for _ in range(20)]).start()",
    ],
)
def test_the_interpreter_exits_cleanly(last: str) -> None:
    run(last)
