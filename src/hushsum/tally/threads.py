"""How many threads count."""

from __future__ import annotations

import os

from hushsum.kernels.parameters import positive_integer


def thread_count(threads: int | None) -> int:
    """The requested number, or all cores this process may use; results do not depend on it."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return positive_integer("threads", threads, at_most=1024)
