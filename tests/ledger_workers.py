"""What other processes do to a ledger in tests: real processes, forked from a server that has all imports."""

from __future__ import annotations

import os
import resource
import signal
import sys
from multiprocessing.context import ForkServerProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

import hushsum.cli.main
from hushsum.errors import BudgetExhausted
from hushsum.ledger import Ledger
from tests.forked import processes
from tests.ledger_fixtures import claim_of

GRANTED = 0
REFUSED = 3


def start(target: object, *arguments: object) -> ForkServerProcess:
    """Start a worker with the state folder of the test."""
    process = processes().Process(
        target=_with_state, args=(os.environ["HUSHSUM_STATE"], target, arguments), daemon=True
    )
    process.start()
    return process


def _with_state(state: str, target: object, arguments: tuple[object, ...]) -> None:
    os.environ["HUSHSUM_STATE"] = state
    assert callable(target)
    target(*arguments)


def debit_together(place: str, key: str, epsilon: float, gate: Barrier) -> None:
    """Wait for all others, then debit; exits 0 or 3."""
    gate.wait()
    try:
        Ledger(place).dataset("d").debit(claim_of(epsilon=epsilon), subject={}, idempotency_key=key)
    except BudgetExhausted:
        sys.exit(REFUSED)
    sys.exit(GRANTED)


def release_together(place: str, key: str, mine: bytes, results: str, gate: Barrier) -> None:
    """All four steps under a key that others use too; writes down what would be published."""
    gate.wait()
    debit = Ledger(place).dataset("d").debit(claim_of(epsilon=0.5), subject={}, idempotency_key=key)
    debit.draw()
    gate.wait()
    heard = debit.stage(mine)
    gate.wait()
    Path(results, str(os.getpid())).write_bytes(heard)
    debit.publish()


def command(arguments: list[str], folder: str, kill_at: int | None = None) -> None:
    """Run the command line; with ``kill_at``, die by SIGKILL when it touches a file for that time."""
    os.chdir(folder)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    sys.argv = ["hushsum", *arguments]
    if kill_at is not None:
        die_at(kill_at)
    hushsum.cli.main.run()


_TOUCHES = (
    "open",
    "os.rename",
    "os.remove",
    "os.chmod",
    "os.mkdir",
    "sqlite3.connect",
    "fcntl.flock",
    "socket.connect",
)


def die_at(moment: int) -> None:
    """Count what the interpreter reports of files and databases, and die at one of these moments."""
    passed = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal passed
        if event in _TOUCHES and not (event == "open" and str(arguments[0]).endswith((".py", ".pyc"))):
            if passed == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            passed += 1

    sys.addaudithook(hook)


def command_with_limit(arguments: list[str], folder: str, largest: int) -> None:
    """Run the command line where no file may grow beyond ``largest`` bytes, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    command(arguments, folder)
