"""Small examples of every linear method, with a slow formula for what one record adds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import hushsum as hs
from hushsum._types import Floats
from hushsum.baselines import bernstein, fourier_series, hermite, lsq_fgt, lsq_rff, trigonometric
from hushsum.baselines._linear_tables import (
    BernsteinLattice,
    BoxPolynomials,
    CosineFeatures,
    TrigonometricPolynomials,
)
from hushsum.kernels import ColumnKernel
from hushsum.tables import BoxBasis, FourierSeries, LinearReading

BOX = (-2.0, 6.0)


def gaussian(dim: int, bandwidth: float = 1.0) -> hs.GaussianKernel:
    return hs.GaussianKernel(dim=dim, bandwidth=bandwidth)


@dataclass(frozen=True)
class Case:
    """A method's maker, and how far a noise-free answer may be from the kernel sum, for each record."""

    name: str
    make: Callable[[], hs.Tally]
    dim: int
    truncation: float

    def basis(self) -> BoxBasis:
        basis = self.make().basis
        assert isinstance(basis, BoxBasis)
        return basis

    def reading(self) -> LinearReading:
        reading = self.make().reading
        assert isinstance(reading, LinearReading)
        return reading

    @property
    def width(self) -> float:
        kernel = self.make().kernel
        assert isinstance(kernel, ColumnKernel)
        return kernel.width


CASES = [
    Case("fourier", lambda: fourier_series(gaussian(1), bounds=BOX, frequencies=9, padding=8.0), 1, 2e-3),
    Case(
        "fourier-tapered-2d",
        lambda: fourier_series(gaussian(2), bounds=BOX, frequencies=11, padding=8.0, tapered=True),
        2,
        1e-4,
    ),
    Case("trigonometric", lambda: trigonometric(gaussian(1), bounds=BOX, terms=24), 1, 1e-4),
    Case("trigonometric-2d", lambda: trigonometric(gaussian(2, 2.0), bounds=BOX, terms=14), 2, 1e-4),
    Case("trigonometric-euclidean", lambda: trigonometric(hs.EuclideanKernel(1, 4.0), bounds=BOX), 1, 2e-2),
    Case("bernstein", lambda: bernstein(gaussian(1), bounds=BOX, degree=30, iterations=40), 1, 2e-2),
    Case("bernstein-2d", lambda: bernstein(gaussian(2, 2.0), bounds=BOX, degree=15, iterations=20), 2, 1e-2),
    Case("hermite", lambda: hermite(gaussian(1), bounds=BOX, order=4, side=1.0), 1, 2e-4),
    Case("hermite-2d", lambda: hermite(gaussian(2), bounds=BOX, order=5, side=1.0), 2, 1e-4),
    Case("hermite-3d", lambda: hermite(gaussian(3, 2.0), bounds=BOX, order=3, side=1.0), 3, 3e-3),
    Case("hermite-manhattan", lambda: hermite(hs.ManhattanKernel(1, 2.0), bounds=BOX, side=0.3), 1, 2e-2),
    Case("hermite-laplacian", lambda: hermite(hs.LaplacianKernel(2, 3.0), bounds=BOX, side=0.4), 2, 1e-2),
    Case("lsq_fgt", lambda: lsq_fgt(gaussian(1), bounds=BOX, order=9), 1, 1e-3),
    Case("lsq_fgt-2d", lambda: lsq_fgt(gaussian(2), bounds=BOX, order=6), 2, 1e-2),
    Case("lsq_rff", lambda: lsq_rff(gaussian(2), bounds=BOX, features=64, seed=3), 2, 0.5),
]


def slow_vector(basis: BoxBasis, record: Floats, width: float) -> Floats:
    """What a record inside the box adds, before it is rounded, from the formulas as they are printed."""
    half = [(high - low) / 2 for low, high in zip(basis.bounds.low, basis.bounds.high, strict=True)]
    centre = [(high + low) / 2 for low, high in zip(basis.bounds.low, basis.bounds.high, strict=True)]
    x = [float(value) - c for value, c in zip(record, centre, strict=True)]
    if isinstance(basis, FourierSeries):
        waves, weights, _ = basis.series
        period = [2 * h + basis.padding * width for h in half]
        angle = [
            2 * math.pi * sum(m * v / p for m, v, p in zip(row, x, period, strict=True)) for row in waves
        ]
        cosines = [w * math.cos(a) for w, a in zip(weights, angle, strict=True)]
        sines = [w * math.sin(a) for w, a in zip(weights, angle, strict=True)]
        return np.array(cosines + sines[1:])
    if isinstance(basis, TrigonometricPolynomials):
        angles = [math.acos(v / h) for v, h in zip(x, half, strict=True)]
        return basis.scale * np.array(
            [
                math.prod(math.cos(r * a) for r, a in zip(rs, angles, strict=True))
                for rs in np.ndindex(*[basis.terms] * basis.dim)
            ]
        )
    if isinstance(basis, BernsteinLattice):
        values = []
        for place in np.ndindex(*[basis.degree + 1] * basis.dim):
            point = [h * (2 * j / basis.degree - 1) for j, h in zip(place, half, strict=True)]
            values.append(math.exp(-sum((v - p) ** 2 for v, p in zip(x, point, strict=True)) / 2 / width**2))
        return basis.scale * np.array(values)
    if isinstance(basis, BoxPolynomials):
        table = np.zeros(basis.shape)
        box = [min(int((v + h) / basis.side), n - 1) for v, h, n in zip(x, half, basis.boxes, strict=True)]
        t = [(v + h - (b + 0.5) * basis.side) * 2 / basis.side for v, h, b in zip(x, half, box, strict=True)]
        for j, (degree, weight) in enumerate(zip(basis.degrees, basis.weights, strict=True)):
            factors = [
                math.cos(k * math.acos(u)) if basis.polynomials == "chebyshev" else u**k
                for k, u in zip(degree, t, strict=True)
            ]
            table[np.ravel_multi_index(box, basis.boxes), j] = weight * math.prod(factors)
        return table.ravel()
    assert isinstance(basis, CosineFeatures)
    frequency, phase = basis._waves
    return np.array(
        [
            basis.scale * math.cos(2 * math.pi * (p + sum(f * v for f, v in zip(fs, x, strict=True))))
            for fs, p in zip(frequency.T, phase, strict=True)
        ]
    )
