"""What an experiment measured, and its JSON file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from papers.private_race.data import Floats
from papers.result_files import update_file

EPSILONS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_DIGITS = 5
_T = TypeVar("_T")


def _silent(line: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Settings:
    """How long an experiment runs.

    ``say`` receives progress messages; ``quick`` takes fewer draws wherever a method averages over them.
    """

    epsilons: tuple[float, ...] = EPSILONS
    repetitions: int = 10
    quick: bool = False
    say: Callable[[str], None] = _silent


@dataclass(slots=True)
class Curves:
    """Results on one data set: ``values[method][repetition][ε]``, and what was chosen on public records."""

    records: int
    features: int
    values: dict[str, list[list[float]]] = field(default_factory=dict)
    chosen: list[list[str]] = field(default_factory=list)
    version: str = ""
    """Which sources made it; empty for results of before versions were recorded."""

    def add(self, method: str, repetition: int, value: float) -> None:
        """The next ε's value of a repetition."""
        _row(self.values.setdefault(method, []), repetition).append(round(float(value), _DIGITS))

    def choose(self, repetition: int, choice: str) -> None:
        """The next ε's choice of a repetition."""
        _row(self.chosen, repetition).append(choice)

    def mean(self, method: str) -> Floats:
        """The mean over repetitions, for each ε."""
        means: Floats = np.mean(np.array(self.values[method]), axis=0)
        return means

    def repetitions(self, method: str) -> int:
        """How many there are of a method."""
        return len(self.values[method])

    def stderr(self, method: str) -> Floats:
        """The standard error of that mean."""
        values = np.array(self.values[method])
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
        errors: Floats = spread / np.sqrt(len(values))
        return errors


@dataclass(slots=True)
class Subject:
    """One experiment: a metric, its settings, and the curves on each data set."""

    name: str
    metric: str
    settings: Settings
    curves: dict[str, Curves]
    seconds: float = 0.0

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The budgets of the curves."""
        return self.settings.epsilons

    def at(self, dataset: str, method: str, epsilon: float) -> float:
        """The mean result of a method at one ε."""
        return float(self.curves[dataset].mean(method)[self.epsilons.index(epsilon)])

    @property
    def repetitions(self) -> tuple[int, int]:
        """The fewest and the most repetitions of a method on a data set."""
        counts = [len(rows) for curves in self.curves.values() for rows in curves.values.values()]
        return min(counts), max(counts)

    def save(self, folder: Path) -> Path:
        """Write ``<name>.json``; data sets that it has from runs with the same ε are kept."""
        file = folder / f"{self.name}.json"

        def change(found: dict[str, Any] | None) -> str:
            document = self._document()
            if found is not None and found["epsilons"] == document["epsilons"]:
                document["datasets"] = found["datasets"] | document["datasets"]
                document["seconds"] = round(document["seconds"] + found["seconds"], 1)
            return _one_line_each(json.dumps(document, indent=1, ensure_ascii=False)) + "\n"

        update_file(file, change)
        return file

    def _document(self) -> dict[str, Any]:
        return {
            "subject": self.name,
            "metric": self.metric,
            "epsilons": list(self.epsilons),
            "repetitions": self.settings.repetitions,
            "quick": self.settings.quick,
            "seconds": round(self.seconds, 1),
            "datasets": {
                name: {
                    "records": each.records,
                    "features": each.features,
                    "values": {m: _rounded(rows) for m, rows in each.values.items()},
                    "chosen": each.chosen,
                    "version": each.version,
                }
                for name, each in self.curves.items()
            },
        }


def load_subject(file: Path) -> Subject:
    """Read what :meth:`Subject.save` wrote."""
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    settings = Settings(tuple(document["epsilons"]), document["repetitions"], document["quick"])
    curves = {
        name: Curves(
            each["records"], each["features"], each["values"], each["chosen"], each.get("version", "")
        )
        for name, each in document["datasets"].items()
    }
    return Subject(document["subject"], document["metric"], settings, curves, document["seconds"])


def _row(rows: list[list[_T]], repetition: int) -> list[_T]:
    while len(rows) <= repetition:
        rows.append([])
    return rows[repetition]


def _rounded(rows: Iterable[Iterable[float]]) -> list[list[float]]:
    return [[round(float(value), _DIGITS) for value in row] for row in rows]


def _one_line_each(text: str) -> str:
    """JSON with every innermost list on one line, so that changed results are changed lines."""
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
