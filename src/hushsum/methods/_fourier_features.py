"""Random Fourier features as a method."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Unpack

import numpy as np

from hushsum.declaration import shows_keywords
from hushsum.kernels import SPECTRAL, Kernel, SpectralKernel
from hushsum.privacy import LAPLACE
from hushsum.tables import (
    FeatureError,
    FourierFeatures,
    Reading,
    chance_error,
    pair_variance,
    pairs_for_laplace,
    predicted_error,
)
from hushsum.tally import Tally

from ._method import BoxKeywords, Method, declared_box, register
from ._prediction import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Option, PredictionRequest

FOURIER_FEATURES = "fourier_features"
DEFAULT_FEATURES = 4000

FEATURES = (500, 1000, 2000, 4000, 8000)
MANY_FEATURES = (16_000, 32_000, 64_000)
MOST_FEATURES = (131_072, 262_144)
"""About these numbers, in whole blocks of every group. An answer takes a quarter of a millisecond at the
last.
"""
GROUPS = (1, 4, 16)
TYPICAL_CHANCE = 0.8
"""The error of orthogonal frequencies over that of independent ones for normal records of the same density:
the geometric mean over the tuning half of ``benchmarks/plans/plan_validation.py``, where it is 0.5 to 1.04.
Records in clusters have less of it.
"""

_NANOSECONDS_WAVE = 0.28
_NANOSECONDS_PRODUCT = 0.0115
_NANOSECONDS_ROUND = 0.065


@shows_keywords(BoxKeywords)
def fourier_features(
    kernel: Kernel,
    *,
    features: int = DEFAULT_FEATURES,
    seed: int = 0,
    orthogonal: bool = True,
    groups: int = 1,
    structured: bool = False,
    **declared: Unpack[BoxKeywords],
) -> Tally:
    """An empty tally of random Fourier features, to be filled by ``add`` and made public by ``release``.

    The way to the Gaussian kernel beyond four columns. Its error falls as 1/√features, down to the noise of
    the claim; with δ or ρ that noise does not grow with features, so take as many as time allows. A release
    is small: 8 bytes per feature. In one to four columns, grids are more accurate.

    Parameters
    ----------
    kernel : SpectralKernel
        Gaussian, Laplacian, Matérn, or any other with a known spectral measure.
    features : int
        Pairs of a cosine and a sine. They are a capacity: a pure-ε release publishes the part of them that
        suits it.
    seed : int
        Public seed of the frequencies. Tallies that shall merge need the same one.
    orthogonal : bool
        Orthogonal frequencies within blocks, which are never worse at a lone record, and better near it. No
        effect on the Laplacian kernel and on single columns.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name, optional
        Declared, never read off the data. Records are clipped to it. Needed where columns have an offset of
        many bandwidths.
    groups : int
        Deal the features out to this many groups and count each record in one of them, picked by a public
        hash: `features` then take the time of ``features / groups``, for √groups times the noise with δ or ρ,
        and no more of it under pure ε. Features are a multiple of ``groups × columns`` then, or of ``groups``
        times the size of a structured transform.
    structured : bool
        Frequencies from random signs and fast Hadamard transforms: from about 35 columns on this takes less
        time than dense ones, and a tenth of it at 768. For kernels of the Euclidean distance. Answers get a
        small bias that more features do not lower.
    columns, max_per_unit
        As for `race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.fourier_features(hs.GaussianKernel(dim=2, bandwidth=1.0), features=500, seed=7)
    >>> f = tally.add([[0.0, 0.0], [0.1, 0.0]] * 500).release(epsilon=1.0, delta=1e-6)
    >>> bool(0.9 < f([[0.0, 0.0]])[0] < 1.1)
    True

    Notes
    -----
    Rahimi and Recht, NIPS 2007; Yu et al., NIPS 2016; with integer features and exact integer noise.
    """
    box, names = declared_box(kernel, declared)
    basis = FourierFeatures(kernel, features, seed, orthogonal, box, names, groups, structured)
    return Tally(basis, max_per_unit=declared.get("max_per_unit"))


def predict(request: PredictionRequest) -> list[Option]:
    """One option for each number of features, and of groups where these pay, whose file is small enough.

    The noise under replace is that of any frequencies; bounds may lower it by up to √2 (`FourierFeatures`),
    which takes too long to find for every option.
    """
    options = [
        _option(request, FourierFeatures(request.kernel, number, seed=0)) for number in _choices(request)
    ]
    if not request.promise.pure:
        options += [_option(request, _many(request.kernel, *each)) for each in product(MOST_FEATURES, GROUPS)]
    return [option for option in options if option.size <= request.max_bytes]


def _many(kernel: Kernel, features: int, groups: int) -> FourierFeatures:
    """At least this number of features in whole blocks, structured where that takes less time."""
    dense = FourierFeatures(kernel, 1, seed=0)
    fastest = dense
    if isinstance(kernel, SpectralKernel) and kernel.rotation_invariant:
        structured = FourierFeatures(kernel, 1, seed=0, structured=True)
        fastest = min(dense, structured, key=_nanoseconds)
    unit = groups * fastest.block
    return replace(fastest, features=-(-features // unit) * unit, groups=groups)


def _nanoseconds(basis: FourierFeatures) -> float:
    """About how long one core takes for one record and feature."""
    if basis.structured:
        return _NANOSECONDS_WAVE + _NANOSECONDS_ROUND * math.log2(basis.block)
    return _NANOSECONDS_WAVE + _NANOSECONDS_PRODUCT * (basis.kernel.dim or 1)


def predict_reading(request: PredictionRequest, reading: Reading) -> list[Option]:
    """The option that releases features that exist."""
    basis = reading.basis
    return [_option(request, basis)] if isinstance(basis, FourierFeatures) else []


def _choices(request: PredictionRequest) -> list[int]:
    choices = {*FEATURES, *MANY_FEATURES}
    if request.promise.pure:
        assert request.promise.epsilon is not None
        share = float(request.promise.epsilon) / request.moves
        # Gamma-radius noise has half the variance of Laplace noise.
        better = 1.0 if request.mechanism == LAPLACE else math.sqrt(2.0)
        choices.add(_best_pairs(request, better * share))
    return sorted(choices)


def _best_pairs(request: PredictionRequest, epsilon: float) -> int:
    """The pairs of least expected squared error over the densities that queries may have.

    Too few features for a dense place cost more than too many for a sparse one: their own error grows as the
    root of the density, while the noise of the best number for a dense place is at most √2 times too large.
    So this is more than the best number for the typical density, where that is small.
    """
    densities, likely = request.densities()
    dim = request.kernel.dim or 1
    variance = float(likely @ np.array([pair_variance(float(each), dim) for each in densities]))
    return pairs_for_laplace(request.records, epsilon, MANY_FEATURES[-1], TYPICAL_CHANCE**2 * variance)


def _option(request: PredictionRequest, basis: FourierFeatures) -> Option:
    """What these features are predicted to cost."""
    dim = request.kernel.dim or 1
    number, groups = basis.features, basis.groups
    settings: dict[str, float] = {"features": number}
    if groups > 1:
        settings["groups"] = groups
    if basis.structured:
        settings["structured"] = True
    sizes = {"records": request.records, "dim": dim, "pairs": number, "groups": groups}

    def predicted(request: PredictionRequest) -> FeatureError:
        noise = request.calibration(basis).table
        return predicted_error(**sizes, noise=noise, density=request.density)

    deviation = predicted(request).noise / NORMAL_MEAN_ABSOLUTE * request.records
    request = request.with_best_share(deviation**2)
    found = predicted(request)
    # Answers are divided by a noisy number of records.
    number_variance = request.calibration(basis).count.variance
    of_count = NORMAL_MEAN_ABSOLUTE * math.sqrt(number_variance) / request.records
    densities, likely = request.densities()
    noise = np.hypot(found.noise, densities * of_count)
    chance = TYPICAL_CHANCE * np.array([chance_error(**sizes, density=float(each)) for each in densities])
    mechanism = request.calibration(basis).table.mechanism
    request = request.kept_by(mechanism)
    return Option(
        method=FOURIER_FEATURES,
        request=request,
        settings=settings,
        mechanism=mechanism,
        shape=basis.shape,
        noise=float(likely @ noise),
        approximation=float(likely @ chance),
        error=request.mean_reciprocal(number_variance) * float(likely @ np.hypot(noise, chance)),
        size=8 * number + HEADER_BYTES,
        seconds=request.records * number / groups * _nanoseconds(basis) * 1e-9,
    )


register(
    Method(
        name=FOURIER_FEATURES,
        tally=fourier_features,
        role=SPECTRAL,
        paper="Rahimi and Recht 2007",
        needs_bounds=False,
        predict=predict,
        predict_reading=predict_reading,
    )
)
