"""Random Fourier features as a method."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Unpack

import numpy as np

from hushsum.declaration import shows_keywords
from hushsum.kernels import SPECTRAL, Kernel, ProfileKernel, SpectralKernel
from hushsum.privacy import LAPLACE
from hushsum.tables import (
    FeatureError,
    FourierFeatures,
    Reading,
    chance_error,
    even_pairs_for_laplace,
    evenness,
    pair_variance,
    pairs_for_laplace,
    predicted_error,
)
from hushsum.tally import Tally

from ._method import BoxKeywords, Method, declared_box, register
from ._prediction import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Option, PredictionRequest, errors_at_densities

__all__ = ["FOURIER_FEATURES", "TYPICAL_CHANCE", "fourier_features"]

FOURIER_FEATURES = "fourier_features"
DEFAULT_FEATURES = 4096

FEATURES = (512, 1024, 2048, 4096, 8192)
MANY_FEATURES = (16_384, 32_768, 65_536)
MOST_FEATURES = (131_072, 262_144)
"""About these numbers, in whole blocks of every group. An answer takes a quarter of a millisecond at the
last.
"""
EVEN_FEATURES = 524_288
"""At most so many that are evenly spread."""
FEW_COLUMNS, FEW_COLUMNS_FEATURES = 3, 16_384
"""In up to so many columns with bounds, where a grid is read faster and for every bandwidth, a plan has no
more features than this.
"""
FEATURES_TO_COMPARE = (1, 2, 3, 4, 5, 6, 8, 12, 20, 32, 64, 128, 256, 512)
"""Orthogonal ones where they are few: they show moves along all columns alike."""
GROUPS = (1, 4, 16)
AXES, _FEATURES_TO_AXES = 16, 32
"""Rows of single columns, and at least so many features for each."""
NOT_WORTH = 1.01
"""More features are left out where they lower the predicted error by less than this factor."""
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
    sobol: bool | None = None,
    axes: int = 0,
    **declared: Unpack[BoxKeywords],
) -> Tally:
    """An empty tally of Fourier features, to be filled by ``add`` and made public by ``release``.

    The way to the Gaussian kernel beyond four columns. Its error falls with the features, down to the noise
    of the claim: about as features^−3/4 in eight columns, and as 1/√features in many. With δ or ρ that noise
    does not grow with features, so take as many as time allows. A release is small: 8 bytes per feature. In
    one to four columns, grids are more accurate.

    Parameters
    ----------
    kernel : SpectralKernel
        Gaussian, Laplacian, Matérn, or any other with a known spectral measure.
    features : int
        Pairs of a cosine and a sine, best a power of two. They are a capacity: a pure-ε release publishes the
        part of them that suits it.
    seed : int
        Public seed of the frequencies. Tallies that shall merge need the same one.
    orthogonal : bool
        Where frequencies are random: orthogonal ones within blocks, which are never worse at a lone record,
        and better near it. No effect on the Laplacian kernel and on single columns. False: independent ones.
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
    sobol : bool, optional
        Evenly spread frequencies, at the points of a scrambled Sobol sequence, for up to 32 columns: the
        error is that of ten to a hundred times as many random ones in four to six columns, with the same
        noise. By default where there are enough features: any in up to four columns, 256 in eight, 4096 in
        ten or more.
    axes : int
        Count so many further rows for each column, of that column alone, from which ``f.sharpened()`` finds
        where records are. Needs bounds; 16 will do. The noise grows as if there were as many more features.
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
    basis = FourierFeatures(kernel, features, seed, orthogonal, box, names, groups, structured, sobol, axes)
    return Tally(basis, max_per_unit=declared.get("max_per_unit"))


def predict(request: PredictionRequest) -> list[Option]:
    """One option for each number of features, and of groups where these pay, whose file is small enough.

    The noise under replace is that of any frequencies; bounds may lower it by up to √2 (`FourierFeatures`),
    which takes too long to find for every option.
    """
    options = [
        _option(request, _with_axes(request, FourierFeatures(request.kernel, number, seed=0)))
        for number in _choices(request)
    ]
    if request.promise.pure:
        return [option for option in options if option.size <= request.max_bytes]
    if not _has_grid(request):
        many = [_many(request.kernel, *each) for each in product(MOST_FEATURES, GROUPS)]
        most = FourierFeatures(request.kernel, EVEN_FEATURES, seed=0)
        many += [most] if most.sobol else []
        options += [_option(request, _with_axes(request, each)) for each in many]
    possible = [option for option in options if option.size <= request.max_bytes]
    least = NOT_WORTH * min((option.error for option in possible), default=math.inf)
    enough = min((option.seconds for option in possible if option.error <= least), default=math.inf)
    return [option for option in possible if option.seconds <= enough]


def _with_axes(request: PredictionRequest, basis: FourierFeatures) -> FourierFeatures:
    """With rows of single columns for ``f.sharpened()``, where noise does not grow with features, and where
    they are few beside these.
    """
    if request.promise.pure or request.bounds is None or _has_grid(request):
        return basis
    axes = min(AXES, basis.features // (_FEATURES_TO_AXES * request.bounds.dim * basis.groups))
    return replace(basis, bounds=request.bounds, axes=axes)


def _many(kernel: Kernel, features: int, groups: int) -> FourierFeatures:
    """At least this number of features in whole blocks, structured where that takes less time."""
    fastest = dense = FourierFeatures(kernel, features, seed=0)
    if isinstance(kernel, SpectralKernel) and kernel.rotation_invariant and not dense.sobol:
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


def _has_grid(request: PredictionRequest) -> bool:
    few = request.bounds is not None and request.bounds.dim <= FEW_COLUMNS
    return few and isinstance(request.kernel, ProfileKernel)


def _choices(request: PredictionRequest) -> list[int]:
    most = FEW_COLUMNS_FEATURES if _has_grid(request) and not request.promise.pure else MANY_FEATURES[-1]
    choices = {each for each in (*FEATURES, *MANY_FEATURES) if each <= most}
    if request.promise.pure:
        assert request.promise.epsilon is not None
        share = float(request.promise.epsilon) / request.moves
        # Gamma-radius noise has half the variance of Laplace noise.
        better = 1.0 if request.mechanism == LAPLACE else math.sqrt(2.0)
        choices.update(_best_pairs(request, better * share))
    return sorted(choices)


def _best_pairs(request: PredictionRequest, epsilon: float) -> set[int]:
    """The pairs of least mean squared error over a low, a middle and a high density.

    Too few features for a dense place cost more than too many for a sparse one: their own error grows as the
    root of the density, while the noise of the best number for a dense place is at most √2 times too large.
    So this is more than the best number for the typical density, where that is small.
    """
    dim = request.kernel.dim or 1
    densities = request.densities
    single = np.array([pair_variance(each, dim) for each in densities]) / len(densities)
    random = TYPICAL_CHANCE**2 * float(single.sum())
    found = {pairs_for_laplace(request.records, epsilon, MANY_FEATURES[-1], random)}
    even = FourierFeatures(request.kernel, MANY_FEATURES[-1], seed=0).even
    if even:

        def variance(pairs: int) -> float:
            spread = np.array([evenness(pairs, each, even) for each in densities])
            return float(single @ spread**2)

        found.add(even_pairs_for_laplace(request.records, epsilon, MANY_FEATURES[-1], variance))
    return found


def _option(request: PredictionRequest, basis: FourierFeatures) -> Option:
    """What these features are predicted to cost."""
    dim = request.kernel.dim or 1
    number, groups = basis.features, basis.groups
    settings: dict[str, float] = {"features": number}
    if groups > 1:
        settings["groups"] = groups
    if basis.structured:
        settings["structured"] = True
    if basis.axes:
        settings["axes"] = basis.axes
    sizes = {"records": request.records, "dim": dim, "pairs": number, "groups": groups, "even": basis.even}

    def predicted(request: PredictionRequest) -> FeatureError:
        noise = request.calibration(basis).table
        return predicted_error(**sizes, noise=noise, density=request.density)

    deviation = predicted(request).noise / NORMAL_MEAN_ABSOLUTE * request.records
    request = request.with_best_share(deviation**2)
    found = predicted(request)
    # Answers are divided by a noisy number of records.
    calibration = request.calibration(basis)
    counted = request.count_error(calibration)
    of_count = NORMAL_MEAN_ABSOLUTE * math.sqrt(counted.variance) / request.records
    noise = np.hypot(found.noise, request.all_densities * of_count)
    chance = (1.0 if basis.sobol else TYPICAL_CHANCE) * np.array(
        [chance_error(**sizes, density=each) for each in request.densities]
    )
    whole = request.mean_reciprocal(counted) * np.hypot(noise, chance)
    request = request.kept_by(calibration)
    return Option(
        method=FOURIER_FEATURES,
        request=request,
        settings=settings,
        mechanism=calibration.table.mechanism,
        shape=basis.shape,
        **errors_at_densities(noise, chance, whole),
        size=8 * basis.shape[0] + HEADER_BYTES,
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
        comparison_settings=tuple({"features": each, "sobol": False} for each in FEATURES_TO_COMPARE),
    )
)
