"""Build the native code with the address and undefined-behaviour sanitizers, and run its tests under them.

``python -m tests.sanitized_build`` builds into ``build/sanitized`` and installs nothing. Two planted bugs
come first, a write beyond an array and an overflow: both must end the process with a report, or the run
fails. It needs GCC, whose runtime library is loaded before everything else.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.native_builds import ROOT, Built, wheel

TESTS = ["tests/unit/native", "tests/unit/files", "tests/unit/privacy/noise", "tests/fuzz/test_fuzz.py"]
WITHOUT = "--ignore=tests/unit/native/test_stub.py"
"""The stub has no planted bugs."""

PLANTED = {
    "heap-buffer-overflow": "_native.planted_overrun(numpy.zeros(5000, numpy.int32))",
    "signed integer overflow": "_native.planted_overflow(2**31 - 1)",
}


def environment(built: Built) -> dict[str, str]:
    """The sanitizers' settings, and their library loaded first.

    The C++ library follows it: AddressSanitizer looks for the function that throws when it starts.
    """
    libraries = [
        subprocess.run(
            ["gcc", f"-print-file-name={name}"], check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so.6")
    ]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(built.package), str(ROOT)]),
        "LD_PRELOAD": " ".join(libraries),
        # Python keeps memory until it ends, which is not a leak.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def planted_bugs_are_caught(built: Built) -> bool:
    """Whether each planted bug ends its process with the report of a sanitizer."""
    caught = True
    for report, call in PLANTED.items():
        code = f"import numpy; from hushsum import _native; {call}; print('passed over')"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment(built),
            cwd=built.package,
        )
        found = done.returncode != 0 and report in done.stderr and "passed over" not in done.stdout
        print(f"planted {report}: {'caught' if found else 'NOT CAUGHT'}")
        caught = caught and found
    return caught


def main() -> int:
    """Build, check that the sanitizers work, run the tests."""
    # The clones for other instruction sets are the same sources, and take an hour to compile like this.
    built = wheel("sanitized", HUSHSUM_SANITIZE="ON", HUSHSUM_PORTABLE="ON", CXX="g++", CC="gcc")
    if not planted_bugs_are_caught(built):
        return 1
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        WITHOUT,
        *TESTS,
    ]
    return subprocess.run(command, check=False, env=environment(built), cwd=ROOT).returncode


if __name__ == "__main__":
    raise SystemExit(main())
