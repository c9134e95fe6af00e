"""Which sources made a result: the library's version, and the last commit of it and of the experiment."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from papers.data import stand_ins

from hushsum.version import __version__

_ROOT = Path(__file__).parent.parent


@cache
def made_by(folder: str) -> str:
    """``0.1.0 (35b5756)``: of the library and of an experiment's folder, relative to the repository.

    A plus sign after the commit says that the sources had changes that were not committed. Without a
    repository it is the version alone. Stand-ins among the data are named. It is read once, when a run
    begins.

    >>> made_by("papers").split()[0] == __version__
    True
    """
    sources = ["src/hushsum", f":(glob){folder}/**/*.py"]
    commit = _git("log", "-1", "--format=%h", "--", *sources)
    data = ", synthetic data" if stand_ins() else ""
    if not commit:
        return f"{__version__}{data}"
    changed = _git("status", "--porcelain", "--", *sources)
    return f"{__version__} ({commit}{'+' if changed else ''}){data}"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
