"""One small released function of every kind, for contracts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import hushsum as hs
from hushsum.baselines import histogram, histogram_tally, kme, mwem, pfda, privbayes
from hushsum.methods import adaptive_grid, landmarks
from hushsum.models import NumberColumn
from hushsum.parties import ReportTerms, collect_reports, make_report
from hushsum.releases import CoefficientFunction, ReleasedFunction

Make = Callable[[], ReleasedFunction]

LINE = np.random.default_rng(3).normal(0.5, 0.1, size=(2000, 1))
PLANE = np.random.default_rng(4).normal(0.5, 0.1, size=(2000, 2))
ONE = hs.GaussianKernel(dim=1, bandwidth=0.1)
TWO = hs.EuclideanKernel(dim=2, bandwidth=0.2)


def _with_public_points() -> ReleasedFunction:
    tally = hs.fourier_features(ONE, features=200, bounds=(0, 1)).add(LINE)
    f = tally.release(rho=0.1, insecure_noise_seed=3)
    assert isinstance(f, CoefficientFunction)
    return f.with_public_points(np.linspace(0.0, 1.0, 20)[:, None])


def _reported() -> ReleasedFunction:
    terms = ReportTerms.of(TWO, epsilon=4.0, rows=40, width=30, bounds=(0, 1))
    reports = [make_report(terms, row[None], insecure_noise_seed=i) for i, row in enumerate(PLANE[:300])]
    return collect_reports(terms, reports)


def _step() -> ReleasedFunction:
    stream = hs.stream(
        hs.grid(ONE, bounds=(0, 1)), horizon=12, epsilon=1.0, delta=1e-6, insecure_noise_seed=3
    )
    stream.step()
    return stream.add(LINE).step()


def _merged() -> ReleasedFunction:
    half = len(PLANE) // 2
    sites = [
        hs.race(TWO, rows=40, width=30, bounds=(0, 1)).add(each) for each in (PLANE[:half], PLANE[half:])
    ]
    released = [each.release(epsilon=1.0, rows=40, insecure_noise_seed=i) for i, each in enumerate(sites)]
    return hs.merge(*released, disjoint_units=True)


def _marginals() -> ReleasedFunction:
    columns = {"a": NumberColumn(0, 1, bins=5), "b": NumberColumn(0, 1, bins=4)}
    rows = pa.table({"a": PLANE[:, 0], "b": PLANE[:, 1]})
    return hs.methods.marginals(columns).add(rows).release(epsilon=1.0, insecure_noise_seed=3)


RELEASES: dict[str, Make] = {
    "race": lambda: (
        hs.race(TWO, rows=40, width=30, bounds=(0, 1)).add(PLANE).release(epsilon=1.0, insecure_noise_seed=3)
    ),
    "merged": lambda: _merged(),
    "grid": lambda: hs.grid(ONE, bounds=(0, 1)).add(LINE).release(epsilon=1.0, insecure_noise_seed=3),
    "stream": lambda: _step(),
    "public points": lambda: _with_public_points(),
    "combined": lambda: hs.releases.combine(
        hs.grid(ONE, bounds=(0, 1)).add(LINE).release(epsilon=1.0, insecure_noise_seed=3),
        np.linspace(0.0, 1.0, 20)[:, None],
    ),
    "nonnegative": lambda: (
        hs.grid(ONE, bounds=(0, 1)).add(LINE).release(epsilon=1.0, insecure_noise_seed=3).nonnegative()
    ),
    "monomials": lambda: (
        hs.methods.monomials(hs.kernels.DotProductKernel(dim=2))
        .add(PLANE)
        .release(epsilon=1.0, insecure_noise_seed=3)
    ),
    "bins": lambda: (
        histogram_tally(TWO, bounds=(0, 1), bins=8).add(PLANE).release(rho=0.1, insecure_noise_seed=3)
    ),
    "histogram": lambda: histogram(PLANE, TWO, bounds=(0, 1), epsilon=1.0, bins=9, insecure_noise_seed=3),
    "mwem": lambda: mwem(LINE, ONE, bounds=(0, 1), epsilon=1.0, rounds=3, insecure_noise_seed=3),
    "privbayes": lambda: privbayes(
        PLANE, TWO, bounds=(0, 1), epsilon=1.0, bins=8, size=300, insecure_noise_seed=3
    ),
    "kme": lambda: kme(LINE, ONE, bounds=(0, 1), epsilon=1.0, points=40, insecure_noise_seed=3),
    "landmarks": lambda: landmarks(LINE, ONE, bounds=(0, 1), epsilon=1.0, points=50, insecure_noise_seed=3),
    "boxes": lambda: adaptive_grid(LINE, ONE, bounds=(0, 1), epsilon=1.0, insecure_noise_seed=3),
    "reports": lambda: _reported(),
    "pfda": lambda: pfda(LINE, ONE, bounds=(0, 1), epsilon=1.0, steps=64, insecure_noise_seed=3),
}

ALL_RELEASES: dict[str, Make] = {**RELEASES, "marginals": lambda: _marginals()}
"""Also those of columns that cannot be axes: they answer queries, and have neither bounds nor a picture."""
