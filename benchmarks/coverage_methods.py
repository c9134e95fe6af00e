"""The methods of ``benchmarks.coverage``, each as one release of some records with one seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.coverage_data import Array, Source

import hushsum as hs
from hushsum import methods

_MOST_PAIRS = 2000
Make = Callable[[Array, Source, float, int], Any]


@dataclass(frozen=True)
class Measured:
    """A method: from how many columns to how many, its release, and the kernel of its answers."""

    name: str
    least: int
    most: int
    make: Make
    euclidean: bool = False
    slow: bool = False
    releases: int = 40
    bands: bool = False

    def kernel(self, source: Source) -> Any:
        """Gaussian, or Euclidean for hash rows."""
        kind = hs.EuclideanKernel if self.euclidean else hs.GaussianKernel
        return kind(source.dim, source.bandwidth)


def _planned(method: str, kernel: str = "gaussian", **extra: Any) -> Make:
    def make(rows: Array, source: Source, epsilon: float, seed: int) -> Any:
        return hs.release(
            rows, kernel=kernel, bandwidth=source.bandwidth, bounds=list(source.bounds), epsilon=epsilon,
            method=method, records=len(rows), seed=seed, insecure_noise_seed=seed, **extra,
        )  # fmt: skip

    return make


def _tallied(start: Callable[[Any, Source, float, int, int], Any]) -> Make:
    def make(rows: Array, source: Source, epsilon: float, seed: int) -> Any:
        kernel = hs.GaussianKernel(source.dim, source.bandwidth)
        tally = start(kernel, source, epsilon, len(rows), seed)
        return tally.add(rows).release(epsilon=epsilon, insecure_noise_seed=seed)

    return make


def _direct(method: Callable[..., Any], **extra: Any) -> Make:
    def make(rows: Array, source: Source, epsilon: float, seed: int) -> Any:
        kernel = hs.GaussianKernel(source.dim, source.bandwidth)
        named = {name: value(source) if callable(value) else value for name, value in extra.items()}
        if "seed" in named:
            named["seed"] = seed
        return method(
            rows, kernel, bounds=list(source.bounds), epsilon=epsilon, insecure_noise_seed=seed, **named
        )

    return make


def _sharpened(rows: Array, source: Source, epsilon: float, seed: int) -> Any:
    """With 300 records for public points, as if they had been public."""
    f = _planned("fourier_features")(rows, source, epsilon, seed)
    return f.with_public_points(rows[:: max(1, len(rows) // 300)])


def _per_column(source: Source, per_bandwidth: float, most: int) -> int:
    """Coefficients along a column: some for each bandwidth of the longest side, at most ``most`` in all."""
    side = max(high - low for low, high in source.bounds) / source.bandwidth
    return max(3, min(math.ceil(per_bandwidth * side), int(most ** (1.0 / source.dim))))


METHODS = (
    Measured("grid", 1, 3, _planned("grid"), bands=True),
    Measured("histogram", 1, 2, _direct(methods.histogram)),
    Measured("hermite", 1, 2, _tallied(lambda k, s, e, n, seed: methods.hermite(
        k, bounds=list(s.bounds), records=n, epsilon=e))),
    Measured("lsq_fgt", 1, 2, _tallied(lambda k, s, e, n, seed: methods.lsq_fgt(
        k, bounds=list(s.bounds), order=4))),
    Measured("fourier_series", 1, 2, _tallied(lambda k, s, e, n, seed: methods.fourier_series(
        k, bounds=list(s.bounds), frequencies=_per_column(s, 0.5, _MOST_PAIRS), tapered=True))),
    Measured("trigonometric", 1, 2, _tallied(lambda k, s, e, n, seed: methods.trigonometric(
        k, bounds=list(s.bounds), terms=_per_column(s, 1.5, _MOST_PAIRS)))),
    Measured("bernstein", 1, 2, _tallied(lambda k, s, e, n, seed: methods.bernstein(
        k, bounds=list(s.bounds), degree=_per_column(s, 1.5, 1600), iterations=64))),
    Measured("fourier_features", 1, 99, _planned("fourier_features"), bands=True),
    Measured("sharpened features", 2, 99, _sharpened),
    Measured("lsq_rff", 1, 99, _tallied(lambda k, s, e, n, seed: methods.lsq_rff(
        k, bounds=list(s.bounds), features=max(20, min(150, int(0.03 * n * e))), seed=seed))),
    Measured("race", 1, 99, _planned("race", "euclidean"), euclidean=True, bands=True),
    Measured("landmarks", 3, 99, _direct(methods.landmarks, points=400, seed=0), slow=True),
    Measured("kme", 1, 2, _direct(methods.kme, lattice=lambda s: _per_column(s, 1.0, 900))),
    Measured("pfda", 1, 1, _direct(methods.pfda)),
    Measured("mwem", 1, 1, _direct(methods.mwem), slow=True),
    Measured("privbayes", 1, 9, _direct(methods.privbayes, seed=0), slow=True),
)  # fmt: skip
