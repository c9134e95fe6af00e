"""How every benchmark keeps its results: raw values as JSON, and a small table for readers.

Raw values go to ``build/benchmarks/NAME.json``, together with the code that measured them; a run that was
stopped continues from there. The table goes to ``benchmarks/results/NAME.md``, which is committed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from hushsum.version import __version__

ROOT = Path(__file__).parents[1]
RAW = ROOT / "build" / "benchmarks"
TABLES = ROOT / "benchmarks" / "results"
_SOURCES = (("src/hushsum", "*.py"), ("src/native", "*"), ("benchmarks", "*.py"))


@dataclass(frozen=True, slots=True)
class Version:
    """The code that measured something. ``digest`` is of the sources, so that changed code is noticed."""

    number: str
    digest: str
    day: str

    def as_json(self) -> dict[str, str]:
        """For the file of results."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.number}, sources {self.digest}, {self.day}"


@cache
def version_of_code() -> Version:
    """The code that is imported here, as it is in the folder now."""
    digest = sha256()
    for folder, pattern in _SOURCES:
        for file in sorted((ROOT / folder).rglob(pattern)):
            if file.is_file():
                digest.update(file.relative_to(ROOT).as_posix().encode())
                digest.update(file.read_bytes())
    return Version(__version__, digest.hexdigest()[:16], f"{datetime.now(UTC):%Y-%m-%d}")


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one benchmark; with a ``folder``, both files are there, such as those of a short run."""

    name: str
    folder: Path | None = None

    @property
    def raw(self) -> Path:
        """The file of raw values; pictures are beside it."""
        return (self.folder or RAW) / f"{self.name}.json"

    @property
    def table(self) -> Path:
        """The file of the table."""
        return (self.folder or TABLES) / f"{self.name}.md"

    def read(self, default: Any = None) -> Any:
        """The raw values of the last run, or ``default``."""
        return json.loads(self.raw.read_text(encoding="utf-8"))["values"] if self.raw.exists() else default

    def write(self, values: Any) -> None:
        """Replace the raw values in one step, so that a run that is stopped leaves a whole file."""
        document = {"benchmark": self.name, "made_by": version_of_code().as_json(), "values": values}
        self.raw.parent.mkdir(parents=True, exist_ok=True)
        part = self.raw.with_suffix(".part")
        part.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(self.raw)

    def publish(self, text: str) -> Path:
        """Write the table, and below it the code that measured it."""
        self.table.parent.mkdir(parents=True, exist_ok=True)
        made_by = f"Made by `python -m benchmarks {self.name}` with Hushsum {version_of_code()}."
        self.table.write_text(f"{text.rstrip()}\n\n{made_by}\n", encoding="utf-8")
        return self.table
