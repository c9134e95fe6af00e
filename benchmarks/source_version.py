"""Which code made a result: the version, the commit, and a digest of the sources."""

from __future__ import annotations

import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from hushsum.version import __version__

_ROOT = Path(__file__).parents[1]
_SOURCES = (
    ("src/hushsum", "*.py"),
    ("src/native", "*"),
    ("benchmarks", "accuracy*.py"),
    ("benchmarks", "lsq_features.py"),
)


@dataclass(frozen=True, slots=True)
class Version:
    """What a run is made by. ``digest`` is of the sources, so that runs of changed code are noticed."""

    number: str
    commit: str
    digest: str
    day: str

    def as_json(self) -> dict[str, str]:
        """For the file of results."""
        return asdict(self)


def version_of_code() -> Version:
    """The code that is imported here, as it is in the folder now."""
    digest = sha256()
    for folder, pattern in _SOURCES:
        for file in sorted((_ROOT / folder).rglob(pattern)):
            if file.is_file():
                digest.update(file.relative_to(_ROOT).as_posix().encode())
                digest.update(file.read_bytes())
    return Version(__version__, _commit(), digest.hexdigest()[:16], f"{datetime.now(UTC):%Y-%m-%d}")


def _commit() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() if found.returncode == 0 else "unknown"
