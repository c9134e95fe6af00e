"""What a choice of options from declared quantities can reach, on data sets that declare the same.

    HUSHSUM_DATA=... python -m benchmarks choice_limits

``auto`` sees the number of records, columns, bounds, kernel and promise, and no record. Data sets for which
all of these are equal get the same option, but the best option of one may be bad for another. For each group
of such data sets this finds the option whose largest error over the best error of a data set is least: no
rule that sees declared quantities alone does better on the group, even if it was made for it. Options are
those that a plan compares: spacings, degrees and shares of grids, or numbers and shares of features, and
landmarks. Errors of grids are computed: the noise is known exactly, and the grid's own error is that of a
release with hardly any noise. Those of features and landmarks are measured.

Writes ``choice_limits.md`` to ``benchmarks/results``; ``--output`` names another folder, and ``--quick`` runs
one group with few options.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.data import Floats
from benchmarks.plans.plan_validation import records_of
from benchmarks.writer import Results
from papers.data import data_folder

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.methods import COUNT_SHARES, NORMAL_MEAN_ABSOLUTE, landmarks
from hushsum.privacy import LAPLACE, Promise, Relation, Sensitivity, UnitChange, calibrate
from hushsum.tables import GridReading

_QUERIES = 300
_HARDLY_ANY_NOISE = 1e7
_DEGREES = (3, 5)
_SPACINGS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)
_PAIRS, _SHARES = (10, 16, 24), COUNT_SHARES[4:8]
_RELEASES, _RELEASES_OF_LANDMARKS = 400, 40

Errors = dict[str, list[float]]
"""Of each option, one for each data set."""


@dataclass(frozen=True)
class Group:
    """Data sets of the same declared quantities, in the unit box."""

    data: tuple[str, ...]
    records: int
    bandwidth: float
    epsilon: float
    errors: Callable[[Group], Errors]

    def rows(self, name: str) -> tuple[Floats, Floats, hs.GaussianKernel, Floats]:
        """Records, queries from them, the kernel, and the true mean kernel values."""
        rows = records_of(name)[: self.records]
        kernel = hs.GaussianKernel(dim=rows.shape[1], bandwidth=self.bandwidth)
        at = np.random.default_rng(7).choice(len(rows), _QUERIES, replace=False)
        return rows, rows[at], kernel, kernel.exact_sum(rows, rows[at]) / len(rows)


def of_grids(group: Group, spacings: Sequence[float] = _SPACINGS) -> Errors:
    """Expected errors of grids; the noisy count is taken alone, as it is where cells are many."""
    found: Errors = {}
    for name in group.data:
        rows, queries, kernel, truth = group.rows(name)
        for spacing in spacings:
            for degree in _DEGREES:
                tally = hs.grid(kernel, bounds=(0, 1), spacing=spacing, degree=degree).add(rows)
                own = tally.release(epsilon=_HARDLY_ANY_NOISE)(queries) - truth
                reading = tally.reading
                assert isinstance(reading, GridReading)
                gain = reading.noise_gain(kernel.prepare(queries, reading.basis.bounds, clip=False))
                one = reading.basis.sensitivity(Relation.ADD_REMOVE)
                for share in COUNT_SHARES:
                    variance = _variance(one, gain, truth, group.epsilon, share)
                    error = _mean_absolute(own, np.sqrt(variance) / len(rows))
                    label = f"grid, spacing {spacing:g}, degree {degree}, {float(share):.0%} for the number"
                    found.setdefault(label, []).append(error)
    return found


def of_features_and_landmarks(group: Group) -> Errors:
    """Measured errors, with standard errors of 2 to 4 %: 400 public seeds of features, 40 of landmarks."""
    found: Errors = {}
    for name in group.data:
        rows, queries, kernel, truth = group.rows(name)
        for pairs in _PAIRS:
            for share in _SHARES:
                errors = []
                for seed in range(_RELEASES):
                    tally = hs.fourier_features(kernel, features=pairs, seed=seed).add(rows)
                    f = tally.release(epsilon=group.epsilon, count_share=float(share))
                    errors.append(np.abs(f(queries) - truth).mean())
                label = f"{pairs} features, {float(share):.0%} for the number"
                found.setdefault(label, []).append(float(np.mean(errors)))
        errors = []
        for seed in range(_RELEASES_OF_LANDMARKS):
            g = landmarks(rows, kernel, bounds=(0, 1), epsilon=group.epsilon, seed=seed)
            errors.append(np.abs(g(queries) - truth).mean())
        found.setdefault("landmarks", []).append(float(np.mean(errors)))
    return found


GROUPS = (
    Group(("skin", "smtp", "http"), 20_000, 0.0139, 1.0, of_grids),
    Group(("skin", "smtp", "http"), 95_156, 0.0139, 0.1, of_grids),
    Group(("skin", "smtp", "http"), 95_156, 0.0139, 1.0, of_grids),
    Group(("skin", "smtp", "http"), 95_156, 0.1, 0.1, of_grids),
    Group(("skin", "smtp", "http"), 95_156, 0.1, 1.0, of_grids),
    Group(("airfoil", "occupancy"), 1503, 0.2, 0.1, of_features_and_landmarks),
)
QUICK = (Group(("skin", "smtp"), 2000, 0.1, 1.0, partial(of_grids, spacings=(0.6, 1.0))),)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one group with few options")
    parser.add_argument("--output", type=Path, help="where results go")
    options = parser.parse_args(arguments)
    data_folder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspiciousParameter)
        lines = [_line(group) for group in (QUICK if options.quick else GROUPS)]
    print(Results("choice_limits", options.output).publish(_report(lines)))
    return 0


def least_largest_ratio(errors: Errors) -> tuple[str, list[float]]:
    """The option whose largest error over the best one is least, and these ratios of it.

    >>> least_largest_ratio({"fine": [2.0, 1.0], "coarse": [1.0, 3.0], "between": [1.5, 1.2]})
    ('between', [1.5, 1.2])
    """
    best = np.min(list(errors.values()), axis=0)
    ratios = {label: (np.array(found) / best).tolist() for label, found in errors.items()}
    label = min(ratios, key=lambda each: max(ratios[each]))
    return label, ratios[label]


def _variance(one: Sensitivity, gain: Floats, truth: Floats, epsilon: float, share: Any) -> Floats:
    """Of the noise of a sum over the records, and of their number at this density."""
    change = UnitChange(one, 1, 1)
    noise = calibrate(
        Promise.of(epsilon=epsilon), change, cells=1 << 40, count_share=share, mechanism=LAPLACE
    )
    return np.asarray(noise.table.variance * gain + truth**2 * noise.count.variance)


def _mean_absolute(own: Floats, deviation: Floats) -> float:
    """The mean over queries of E|own + normal noise|."""
    scaled = np.minimum(np.square(own / deviation) / 2.0, 700.0)
    inside = np.array([math.erf(each) for each in own / deviation / math.sqrt(2.0)])
    return float((NORMAL_MEAN_ABSOLUTE * deviation * np.exp(-scaled) + own * inside).mean())


def _line(group: Group) -> str:
    errors = group.errors(group)
    label, ratios = least_largest_ratio(errors)
    best = [list(errors)[i] for i in np.argmin(list(errors.values()), axis=0)]
    shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in zip(group.data, ratios, strict=True))
    own = "; ".join(f"{name}: {each}" for name, each in zip(group.data, best, strict=True))
    declared = f"{group.records:,} records, bandwidth {group.bandwidth:g}, ε = {group.epsilon:g}"
    return f"| {declared} | {max(ratios):.2f} × | {label} | {shown} | {own} |"


def _report(lines: Sequence[str]) -> str:
    head = (
        "# What a choice from declared quantities can reach\n\n"
        "`HUSHSUM_DATA=… python -m benchmarks choice_limits`. Data sets of one line declare the same, so\n"
        "that any plan without public data takes the same option for all of them. *Least largest ratio* is\n"
        "that of the best such option: its error over that of the best option of a data set, where this is\n"
        "largest. No rule that sees declared quantities alone has less on these data sets. A public sample,\n"
        "or a declared `density`, tells them apart.\n\n"
        "| declared | least largest ratio | by | ratios | best of each |\n|---|---|---|---|---|\n"
    )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
