"""LSQ-RFF with the best number of features by oracle, in floating point and with the number of records for
free.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from benchmarks.accuracy_data import Contest, Floats
from benchmarks.accuracy_methods import AT_THE_END, DELTA, EPSILONS, Cell
from benchmarks.accuracy_targets import FLOORS

NAME = "lsq_rff"
BLOCK = 4096
MOST_FEATURES = 1 << 18
_SEEDS = 3
_NOISES = 4
_RECORDS_AT_A_TIME = 1024
_WORK = 4e9
"""Records times features that are counted for one data set: about a minute."""


@dataclass
class Features:
    """√2·cos(ω·x + b) for a growing number of frequencies: those of m features are the first of more."""

    contest: Contest
    seed: int
    means: list[Floats] = field(default_factory=list)
    queries: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._records, repeats = np.unique(self.contest.records, axis=0, return_counts=True)
        self._share = (repeats / len(self.contest.records)).astype(np.float32)

    def grow(self) -> None:
        """Count one more block of features."""
        kernel = self.contest.kernel
        scale = 1.0 / kernel.bandwidth
        waves = self._random.normal(0.0, scale, (kernel.dim, BLOCK)).astype(np.float32)
        phases = self._random.uniform(0.0, 2.0 * np.pi, BLOCK).astype(np.float32)
        means = np.zeros(BLOCK)
        for start in range(0, len(self._records), _RECORDS_AT_A_TIME):
            part = slice(start, start + _RECORDS_AT_A_TIME)
            means += self._share[part] @ np.cos(self._records[part] @ waves + phases)
        self.means.append(math.sqrt(2.0) * means)
        self.queries.append(math.sqrt(2.0) * np.cos(self.contest.queries @ waves + phases))

    def errors(self, number: int, deviation: Callable[[int], Floats]) -> tuple[float, float]:
        """The mean absolute and the root mean square error of so many features."""
        noisy = np.concatenate(self.means)[:number] + deviation(number)
        sums = np.zeros(len(self.contest.truth))
        for start, queries in zip(range(0, number, BLOCK), self.queries, strict=False):
            part = noisy[start : start + BLOCK]
            sums += queries[:, : len(part)] @ part
        away = sums / number - self.contest.truth
        return float(np.abs(away).mean()), float(np.sqrt((away**2).mean()))


def _sizes(most: int) -> Iterator[int]:
    size = 8
    while size <= most:
        yield size
        size *= 2


def lsq_rff_cells(
    contest: Contest, *, tell: Callable[[str], None], most_features: int = MOST_FEATURES
) -> list[Cell]:
    """The best number for each promise. The numbers are doubled until the best is not the last, or until the
    counting takes too long, which the cell then says.
    """
    started = time.process_time()
    runs = [Features(contest, seed) for seed in range(_SEEDS)]
    records, random = len(contest.records), np.random.default_rng(0)
    best: dict[tuple[float, float], Cell] = {}
    for number in _sizes(most_features):
        while len(runs[0].means) * BLOCK < number:
            for run in runs:
                run.grow()
        for epsilon in EPSILONS:
            for delta in (0.0, DELTA):
                # One record moves the sums by √2 in each feature: by √2·m in L1 and √(2m) in L2.
                scale = math.sqrt(2.0) * number / (epsilon * records)
                sigma = FLOORS[epsilon] * math.sqrt(2.0 * number) / records

                def noise(m: int, pure: bool = delta == 0.0, b: float = scale, s: float = sigma) -> Floats:
                    return random.laplace(0.0, b, m) if pure else random.normal(0.0, s, m)

                found = [run.errors(number, noise) for run in runs for _ in range(_NOISES)]
                cell = _cell(contest, epsilon, delta, number, found, time.process_time() - started)
                kept = best.get((epsilon, delta))
                if kept is None or cell.error < kept.error:
                    best[epsilon, delta] = cell
        inside = all(number > 2 * cell.settings["features"] for cell in best.values())
        tell(f"{contest.name} {NAME} {number}")
        if inside or 2 * number * records * _SEEDS > _WORK:
            break
    for cell in best.values():
        if cell.settings["features"] == number:
            cell.note = AT_THE_END
    return list(best.values())


def _cell(
    contest: Contest, epsilon: float, delta: float, number: int, found: list[tuple[float, float]], took: float
) -> Cell:
    errors = np.array(found)
    by_seed = errors[:, 0].reshape(_SEEDS, _NOISES).mean(axis=1)
    return Cell(
        data=contest.name,
        method=NAME,
        epsilon=epsilon,
        delta=delta,
        error=float(errors[:, 0].mean()),
        relative=float(errors[:, 0].mean() / contest.truth.mean()),
        rms=float(np.sqrt((errors[:, 1] ** 2).mean())),
        spread=float(errors[:, 0].std()),
        releases=len(found),
        build=took,
        query=0.0,
        size=8 * number,
        mechanism="gaussian" if delta else "laplace",
        settings={"features": number},
        seeds=_SEEDS,
        seed_stderr=float(by_seed.std(ddof=1) / math.sqrt(_SEEDS)),
    )
