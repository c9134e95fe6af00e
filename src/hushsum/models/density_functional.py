"""Functional perturbation of kernel densities: sums of features in whole numbers, with noise on coefficients.

Features φ with φ(x)·φ(q) = k(x, q) are exact for Gaussian kernels in a box that is not many bandwidths wide:
cosines and sines of a Fourier series, weighted with the root of the kernel's own coefficients. Gaussian noise
on these coefficients is a path of the Gaussian process whose covariance is k. Elsewhere features are random,
and their error does not fall with ε: `functional_error` states it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box
from hushsum.bases.base import LinearReading
from hushsum.bases.declared_box import MAX_SCALE
from hushsum.bases.fourier_feature_errors import pair_variance
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.bases.fourier_series import MAX_FREQUENCY, FourierSeries
from hushsum.errors import Argument, ClaimError, SecretRefused
from hushsum.kernels.base import ColumnKernel, GaussianProfileKernel, Kernel
from hushsum.methods.prediction_request import typical_density
from hushsum.models.density_tables import KernelTable
from hushsum.privacy.calibration import COUNT_SHARE
from hushsum.privacy.claim import Claim, Promise, Relation
from hushsum.privacy.functional_perturbation import LatticePart, lattice_variances, perturb_lattice
from hushsum.privacy.integer_noise import GAUSSIAN, IntegerNoise
from hushsum.privacy.release_noise import release_noise
from hushsum.records.bounds import Bounds
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.version import PRODUCER

RANDOM_FEATURES = 16_384
"""Pairs of random features, where there are no exact ones: about 1 s for 100,000 points with errors."""

PADDING = 8.0
"""Bandwidths between the ends of the box in the periodic series, where the kernel is below 10⁻¹³."""

_MOST_PAIRS = 2048
_GAUSSIAN_TAPER = 0.5
_FREQUENCIES_PER_BANDWIDTH = 1.0
"""Highest frequency over the number of bandwidths in a period: beyond, weights are below 64 of 2²⁰ steps, and
all coefficients together add less than 10⁻⁹ to the kernel.
"""


def functional_basis(kernel: Kernel, bounds: Bounds, seed: int) -> FourierSeries | FourierFeatures:
    """The exact features of a kernel on a box, where there are not too many of them, or else random ones."""
    if isinstance(kernel, GaussianProfileKernel):
        width = kernel.gaussian_width()
        periods = [2.0 * float(half) / width + PADDING for half in bounds.half_width]
        highest = math.ceil(_FREQUENCIES_PER_BANDWIDTH * max(periods))
        # Half the lattice points of a ball, or here an ellipsoid.
        ball = math.pi ** (len(periods) / 2) / math.gamma(len(periods) / 2 + 1)
        if highest <= MAX_FREQUENCY and ball * math.prod(periods) / 2.0 <= _MOST_PAIRS:
            return FourierSeries(
                kernel=kernel,
                bounds=bounds,
                frequencies=highest,
                padding=PADDING,
                taper=_GAUSSIAN_TAPER,
                scale=MAX_SCALE,
            )
    return FourierFeatures(kernel, RANDOM_FEATURES, seed, True, bounds)


class FunctionalSums:
    """Σ φ(x) in whole numbers for every kernel, and the number of records; secret.

    Privacy
    -------
    f = Σ k(x, ·) in the space of the features is φ-sum · φ(·): one record present or absent moves its
    coefficients by a vector no longer than Δ2 of its basis (`FourierSeries`, `FourierFeatures`). With k
    kernels, each is calibrated as if one record moved it by √k·Δ2, so that all together are one Gaussian
    mechanism. A fiftieth of ε pays for a noisy count by exact discrete Laplace; what is left of ε, and δ, for
    exact discrete Gaussian noise on all coefficients, with `lattice_variances`. The two add up.
    """

    __slots__ = ("_bases", "_count", "_promise", "_tables")

    def __init__(self, planned: Sequence[KernelTable], promise: Promise, seed: int, box: Box) -> None:
        if promise.pure:
            raise ClaimError(
                parameter="delta",
                rule=("must be above 0 for ", Argument("method", "functional")),
                got="none",
                remedy=("give ", Argument("delta", 1e-6)),
            )
        bounds = Bounds.of(box, len(box))
        assert bounds is not None
        self._promise = promise
        self._bases = {each.part: functional_basis(each.kernel, bounds, seed) for each in planned}
        self._tables: dict[str, NDArray[np.int64]] = {
            name: np.zeros(basis.shape, np.int64) for name, basis in self._bases.items()
        }
        self._count = 0

    def add(self, records: object) -> None:
        """Count records."""
        for name, basis in self._bases.items():
            batch = basis.prepare(records)
            basis.accumulate(self._tables[name], batch, step=1, threads=1)
        self._count += len(batch)

    def release(self, claim: Claim) -> dict[str, ReleasedFunction]:
        """One path for each kernel, drawn together under the claim."""
        count_share, rest = _shares(self._promise)
        with release_noise(None) as noise:
            noisy, count_noise = noise.laplace(np.array([self._count], np.int64), 1, count_share)
        variances = _variances(list(self._bases.values()), rest)
        return {
            name: CoefficientFunction(
                reading=_reading(basis),
                cells=perturb_lattice(self._tables[name], variance),
                claim=claim,
                noise=IntegerNoise(GAUSSIAN, variance),
                noisy_count=int(noisy[0]),
                count_noise=count_noise,
                producer=PRODUCER,
            )
            for (name, basis), variance in zip(self._bases.items(), variances, strict=True)
        }

    def __repr__(self) -> str:
        return "<FunctionalSums CONFIDENTIAL>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(
            rule="private sums must not be pickled or copied", remedy="release the model and share that"
        )


def functional_error(planned: Sequence[KernelTable], records: int, promise: Promise, box: Box) -> float:
    """The mean absolute error of the first kernel's mean value at a point, noise and approximation together.

    Exact features have the error of their noise. Random ones have that of their frequencies too, for the
    density that plans assume; it is the same for every ε.
    """
    bounds = Bounds.of(box, len(box))
    assert bounds is not None
    bases = [functional_basis(each.kernel, bounds, 0) for each in planned]
    basis, kernel = bases[0], planned[0].kernel
    variance = _variances(bases, _shares(promise)[1])[0]
    centre = basis.prepare_queries(np.array([(np.array(bounds.low) + np.array(bounds.high)) / 2.0]))
    squared = float(variance) * float(_reading(basis).noise_gain(centre)[0]) / records**2
    if isinstance(basis, FourierFeatures):
        dim = kernel.dim if isinstance(kernel, ColumnKernel) else 1
        squared += pair_variance(typical_density(kernel, bounds), dim) / basis.features
    return math.sqrt(2.0 / math.pi * squared)


def _shares(promise: Promise) -> tuple[Fraction, Promise]:
    """The part of ε for the count, and what is left for the coefficients."""
    assert promise.epsilon is not None
    share = promise.epsilon * COUNT_SHARE
    return share, Promise(promise.epsilon - share, promise.delta, None)


def _variances(bases: Sequence[FourierSeries | FourierFeatures], promise: Promise) -> list[Fraction]:
    """The variance of the noise of each basis, all of the same records."""
    moves = [basis.sensitivity(Relation.ADD_REMOVE).l2_squared for basis in bases]
    cells = [math.prod(basis.shape) for basis in bases]
    return lattice_variances([LatticePart(*each) for each in zip(moves, cells, strict=True)], promise)


def _reading(basis: FourierSeries | FourierFeatures) -> LinearReading:
    reading = basis.reading()
    assert isinstance(reading, LinearReading)
    return reading
