"""Run a fuzz target for long: ``python -m tests.fuzz.run NAME [--inputs N] [--seconds S] [--atheris]``.

Without ``--atheris`` inputs are changed by consecutive seeds, and how far a target came is kept in
``build/fuzz/NAME.done``, so that a run that was interrupted goes on where it stopped. With it, Atheris
(the extra ``fuzz``) chooses the changes by the code that they reach; what it keeps is in
``build/fuzz/NAME.corpus``. A finding ends the run and is left in ``build/fuzz`` as NAME.finding; move it to
``tests/fuzz/corpus/NAME`` together with the correction.

Each input may take ten seconds and the process four gigabytes; more is a finding.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

if "--atheris" in sys.argv:
    import atheris

    # Before anything else imports the package: its functions are instrumented as they are loaded.
    with atheris.instrument_imports(include=["hushsum"], enable_loader_override=False):
        import hushsum.records._files
        import hushsum.releases._base  # noqa: F401

from tests.fuzz.targets import TARGETS, Target

PLACE = Path(__file__).parents[2] / "build" / "fuzz"
MEMORY_BYTES = 4 << 30
_SECONDS = 10
_NOTE_EVERY = 200


class TooSlow(Exception):
    """An input took longer than any may."""


def fuzz(target: Target, inputs: int, seconds: float | None = None) -> int:
    """Check changed inputs until so many are done in all runs together; the number of all that were done."""
    PLACE.mkdir(parents=True, exist_ok=True)
    note = PLACE / f"{target.name}.done"
    done = int(note.read_text()) if note.exists() else 0
    seeds = target.inputs()
    end = None if seconds is None else time.monotonic() + seconds
    with _limits():
        while done < inputs and (end is None or time.monotonic() < end):
            chance = random.Random(done)
            data = target.mutate(chance.choice(seeds), chance)
            _check(target, data)
            done += 1
            if done % _NOTE_EVERY == 0:
                note.write_text(str(done))
    note.write_text(str(done))
    return done


def _check(target: Target, data: bytes) -> None:
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        target.check(data)
    except Exception:
        PLACE.mkdir(parents=True, exist_ok=True)
        (PLACE / f"{target.name}.finding").write_bytes(data)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class _limits:
    """Memory and time limits, as they were before at the end."""

    def __enter__(self) -> None:
        self._memory = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, self._memory[1]))
        self._handler = signal.signal(signal.SIGALRM, _too_slow)

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_DATA, self._memory)
        signal.signal(signal.SIGALRM, self._handler)


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def by_coverage(target: Target, inputs: int) -> None:
    """Let Atheris choose the changes; ends the process."""
    kept = PLACE / f"{target.name}.corpus"
    kept.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.inputs()):
        (kept / f"seed-{number}").write_bytes(data)

    def once(data: bytes) -> None:
        _check(target, target.repair(data))

    with _limits():
        atheris.Setup(
            [sys.argv[0], str(kept), f"-runs={inputs}", "-max_len=65536", "-print_final_stats=1"], once
        )
        atheris.Fuzz()


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TARGETS)}; default all")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=None, help="for each target")
    parser.add_argument("--atheris", action="store_true", help="choose changes by coverage; one target")
    requested: Any = parser.parse_args()
    for name in requested.names or TARGETS:
        if requested.atheris:
            by_coverage(TARGETS[name], requested.inputs)
        print(f"{name}: {fuzz(TARGETS[name], requested.inputs, requested.seconds)} inputs", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
