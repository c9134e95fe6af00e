"""Pure ε in 3 to 9 columns: landmarks against random features with their best number of features.

    HUSHSUM_DATA=... python -m benchmarks medium_dimension [data ...]

Prints the table of docs/explanation/medium-dimension.md: mean absolute errors of the mean kernel value at 500
held-out records, over five seeds of frequencies, places and noise. LSQ-RFF gets its best number of features
by an oracle; the others run with their defaults.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from benchmarks.data import _RNA_RANGES, Floats, Rows, _columns, _scaled, _table

import hushsum as hs
from hushsum.baselines import privbayes
from hushsum.methods import landmarks
from hushsum.releases import ReleasedFunction

EPSILONS = (1.0, 0.1)
SEEDS = 5
QUERIES = 500
_RECORDS_AT_A_TIME = 1000
FEATURES = (100, 200, 400, 1000, 2000, 4000, 8000, 16_000)

# Round numbers around the ranges that the descriptions of the data state.
_RANGES = {
    "cod_rna": _RNA_RANGES,
    "htru2": (
        (0, 200), (0, 100), (-2, 10), (-2, 70), (0, 250), (0, 120), (-5, 40), (-5, 1200),
    ),
    "shuttle": (
        (0, 150), (-5000, 5100), (0, 150), (-5000, 5000), (-200, 450), (-27_000, 16_000), (-50, 110),
        (-360, 280), (-360, 270),
    ),
    "kdd_http": ((-3, 17),) * 3,
    "protein_casp": (
        (0, 50_000), (0, 20_000), (0, 1), (0, 400), (0, 6_000_000), (0, 600), (0, 110_000), (0, 400), (0, 60),
    ),
    "mammography": ((-1, 32), (-1, 6), (-1, 30), (-1, 10), (-1, 24), (-1, 2)),
}  # fmt: skip
CASES = (
    ("cod_rna", 0.1),
    ("htru2", 0.1),
    ("shuttle", 0.1),
    ("kdd_http", 0.1),
    ("shuttle", 0.03),
    ("protein_casp", 0.1),
    ("mammography", 0.1),
)


@dataclass(frozen=True)
class Case:
    """Records in the unit cube, held-out queries, and exact answers."""

    name: str
    records: Rows
    queries: Rows
    kernel: hs.GaussianKernel
    truth: Floats

    @classmethod
    def of(cls, name: str, bandwidth: float) -> Case:
        """Columns scaled to [0, 1] by public ranges, in a fixed random order."""
        table = _table(name)
        names = [each for each in table.column_names if each != "target"]
        rows = _scaled(_columns(table, names), _RANGES[name])
        rows = np.random.default_rng(1).permutation(rows)
        kernel = hs.GaussianKernel(dim=rows.shape[1], bandwidth=bandwidth)
        queries, records = rows[:QUERIES], rows[QUERIES:]
        return cls(name, records, queries, kernel, kernel.exact_sum(records, queries) / len(records))

    def error(self, f: ReleasedFunction) -> float:
        """At the held-out records."""
        return float(np.abs(f(self.queries) - self.truth).mean())


def lsq_errors(case: Case) -> Iterator[tuple[float, str, float]]:
    """LSQ-RFF in floating point, with the best number of features for each ε over all seeds together.

    Features √(2/m)·cos(ω·x + b), so that one record moves all m by √(2m) in L1; m features are the first of
    the most.
    """
    records, repeats = np.unique(case.records, axis=0, return_counts=True)
    share = (repeats / len(case.records)).astype(np.float32)
    found: dict[tuple[float, int], list[float]] = {}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        waves = rng.normal(0.0, 1.0 / case.kernel.bandwidth, (case.kernel.dim, FEATURES[-1])).astype(
            np.float32
        )
        phases = rng.uniform(0.0, 2.0 * np.pi, FEATURES[-1]).astype(np.float32)
        means = np.zeros(FEATURES[-1])
        for start in range(0, len(records), _RECORDS_AT_A_TIME):
            part = slice(start, start + _RECORDS_AT_A_TIME)
            means += share[part] @ np.cos(records[part] @ waves + phases)
        asked = np.cos(case.queries @ waves + phases).astype(np.float64)
        for number, epsilon in product(FEATURES, EPSILONS):
            unit = math.sqrt(2.0 / number)
            scale = number * unit / (epsilon * len(case.records))
            noisy = unit * means[:number] + rng.laplace(0.0, scale, number)
            error = float(np.abs(unit * asked[:, :number] @ noisy - case.truth).mean())
            found.setdefault((epsilon, number), []).append(error)
    for epsilon in EPSILONS:
        best = min(FEATURES, key=lambda number: float(np.mean(found[epsilon, number])))
        yield epsilon, "LSQ-RFF, best number", float(np.mean(found[epsilon, best]))
        print(f"{case.name}: LSQ-RFF is best with {best} features at ε = {epsilon:g}", file=sys.stderr)


def feature_errors(case: Case) -> Iterator[tuple[float, str, float]]:
    """Paired orthogonal features with their default number."""
    tallies = [
        hs.fourier_features(case.kernel, bounds=(0, 1), seed=seed).add(case.records) for seed in range(SEEDS)
    ]
    for epsilon in EPSILONS:
        for mechanism in ("discrete laplace", "gamma radius"):
            errors = [case.error(each.release(epsilon=epsilon, mechanism=mechanism)) for each in tallies]
            yield epsilon, f"fourier_features, {mechanism}", float(np.mean(errors))


def one_call_errors(
    case: Case, name: str, release: Callable[..., ReleasedFunction], **options: object
) -> Iterator[tuple[float, str, float]]:
    """A method that releases in one call."""
    for epsilon in EPSILONS:
        errors = [
            case.error(
                release(case.records, case.kernel, bounds=(0, 1), epsilon=epsilon, seed=seed, **options)
            )
            for seed in range(SEEDS)
        ]
        yield epsilon, name, float(np.mean(errors))


def known_places(case: Case) -> Iterator[tuple[float, str, float]]:
    """Landmarks at 500 records that are public in addition: what exact knowledge of the places would give."""
    public, private = case.records[:QUERIES], case.records[QUERIES:]
    less = Case(
        case.name, private, case.queries, case.kernel,
        case.kernel.exact_sum(private, case.queries) / len(private),
    )  # fmt: skip
    yield from one_call_errors(less, "landmarks, 500 public records", landmarks, public=public)


def main() -> None:
    """Run the named data, or all."""
    wanted = sys.argv[1:] or sorted(_RANGES)
    print("| data | bandwidth | method | ε = 1 | ε = 0.1 |\n|---|---|---|---|---|")
    for name, bandwidth in CASES:
        if name not in wanted:
            continue
        case = Case.of(name, bandwidth)
        rows: dict[str, dict[float, float]] = {}
        runs = (
            lsq_errors(case),
            feature_errors(case),
            one_call_errors(case, "privbayes", privbayes),
            one_call_errors(case, "landmarks", landmarks),
            known_places(case),
        )
        for run in runs:
            for epsilon, method, error in run:
                rows.setdefault(method, {})[epsilon] = error
        for method, errors in rows.items():
            cells = " | ".join(f"{errors[each]:.1e}" if each in errors else "" for each in EPSILONS)
            print(f"| {name} | {bandwidth} | {method} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
