"""Build the native code with sanitizers, and run its tests under them.

``python -m tests.sanitized_build`` builds into ``build`` and installs nothing: once with the address and
undefined-behaviour sanitizers, once with the thread sanitizer. Planted bugs come first, a write beyond an
array, an overflow and a data race: each must end its process with a report, or the run fails. It needs GCC,
whose runtime library is loaded before everything else. ``memory`` or ``threads`` as an argument runs one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests.native_builds import ROOT, Built, wheel

WITHOUT = "--ignore=tests/unit/native/test_stub.py"
"""The stub has no planted bugs."""


@dataclass(frozen=True)
class Sanitizers:
    """A build: its sanitizers, their library, the bugs that they must catch, and the tests to run."""

    flags: str
    library: str
    planted: dict[str, str]
    tests: Sequence[str]


BUILDS = {
    "memory": Sanitizers(
        "address,undefined",
        "libasan.so",
        {
            "heap-buffer-overflow": "_native.planted_overrun(numpy.zeros(5000, numpy.int32))",
            "signed integer overflow": "_native.planted_overflow(2**31 - 1)",
        },
        ["tests/unit/native", "tests/unit/files", "tests/unit/privacy/noise", "tests/fuzz/test_fuzz.py"],
    ),
    "threads": Sanitizers(
        "thread",
        "libtsan.so",
        {"data race": "_native.planted_race(numpy.zeros(5000, numpy.int32))"},
        # Those that give a number of threads, or count in several threads of Python.
        [
            "tests/unit/native",
            "tests/unit/privacy/noise",
            "tests/unit/tables",
            "tests/unit/tally",
            "tests/unit/releases/test_sketch.py",
            "tests/property/test_tally.py",
            "tests/property/test_fourier_features.py",
        ],
    ),
}


def environment(built: Built, sanitizers: Sanitizers) -> dict[str, str]:
    """The sanitizers' settings, and their library loaded first.

    The C++ library follows it: AddressSanitizer looks for the function that throws when it starts.
    """
    libraries = [
        subprocess.run(
            ["gcc", f"-print-file-name={name}"], check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()
        for name in (sanitizers.library, "libstdc++.so.6")
    ]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(built.package), str(ROOT)]),
        "LD_PRELOAD": " ".join(libraries),
        # Python keeps memory until it ends, which is not a leak.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Tests fork, and the child of a process with threads is not checked further.
        "TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0",
        "PYTHONMALLOC": "malloc",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def planted_bugs_are_caught(built: Built, sanitizers: Sanitizers) -> bool:
    """Whether each planted bug ends its process with the report of a sanitizer."""
    caught = True
    for report, call in sanitizers.planted.items():
        code = f"import numpy; from hushsum import _native; {call}; print('passed over')"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment(built, sanitizers),
            cwd=built.package,
        )
        found = done.returncode != 0 and report in done.stderr and "passed over" not in done.stdout
        print(f"planted {report}: {'caught' if found else 'NOT CAUGHT'}")
        caught = caught and found
    return caught


def run(name: str) -> int:
    """Build, check that the sanitizers work, run the tests."""
    sanitizers = BUILDS[name]
    # The clones for other instruction sets are the same sources, and take an hour to compile like this.
    built = wheel(
        f"sanitized-{name}", HUSHSUM_SANITIZE=sanitizers.flags, HUSHSUM_PORTABLE="ON", CXX="g++", CC="gcc"
    )
    if not planted_bugs_are_caught(built, sanitizers):
        return 1
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", WITHOUT]
    return subprocess.run(
        [*command, *sanitizers.tests], check=False, env=environment(built, sanitizers), cwd=ROOT
    ).returncode


def main(names: Sequence[str]) -> int:
    """Run the named builds, or all."""
    return max(run(name) for name in names or BUILDS)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
