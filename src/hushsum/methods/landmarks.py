"""Landmarks: public points where the records are, weighted by a few features that were measured there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Unpack

import numpy as np

from hushsum._types import Floats
from hushsum.bases.grid_weights import MAX_DIM
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel, SpectralKernel
from hushsum.kernels.parameters import positive_integer
from hushsum.kernels.registry import SPECTRAL
from hushsum.methods.one_call_methods import PUBLIC_POINTS, DeclaredBox, OneCallRelease, ReleaseKeywords
from hushsum.methods.prediction_request import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Option, PredictionRequest
from hushsum.methods.principal_features import (
    LENGTH,
    PrincipalFeatures,
    best_number,
    fitted_weights,
    prior_variance,
)
from hushsum.methods.private_tree import column_histograms, depth_penalty, draw_points, private_leaves
from hushsum.methods.registry import Method, register
from hushsum.privacy.claim import Relation, exact
from hushsum.privacy.integer_noise import GAMMA, LAPLACE
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.release_noise import EXACT_INTEGERS, release_noise
from hushsum.records.bounds import DeclaredBounds
from hushsum.records.data_derived_parameters import clipping_allowed
from hushsum.releases.point_errors import FeatureErrors
from hushsum.releases.weighted_points import PointsFunction
from hushsum.version import PRODUCER

NAME = "landmarks"
MECHANISM = Mechanism.of(LAPLACE, GAMMA)
MOST_POINTS = 1 << 13
DEFAULT_POINTS = 2000
MOST_COLUMNS = 20
"""Up to which a plan considers it; it was not tried beyond."""

_LOCATION_SHARE = Fraction(3, 10)
_SECONDS_TO_FIT = 3.0
_NANOSECONDS = 0.15
COUNT_PART = Fraction(1, 10)
"""Of ε, for the number of records. An answer f has an error of f·√2/(part·ε·N) from it; with a fiftieth of
ε that is the largest error of all where answers are near 1.
"""


def landmarks(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    epsilon: float,
    delta: float | None = None,
    points: int = DEFAULT_POINTS,
    public: object = None,
    location_share: float = float(_LOCATION_SHARE),
    seed: int = 0,
    relation: str | Relation = Relation.ADD_REMOVE,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[ReleaseKeywords],
) -> PointsFunction:
    """Weighted public points placed where the records are. Spends ``epsilon``, in two steps.

    For 4 to 20 columns under pure ε, if records fill a small part of the declared box at the scale of the
    bandwidth, or if public records show where they are. Not for records that fill the box, nor for
    bandwidths so narrow, or budgets so small, that the places cannot be found: random features are better
    there. Costs records × points × features. The error bars of ``query`` are those of a model
    (`hushsum.releases.FeatureErrors`): the noise is known, how far records are from the points is estimated.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private.
    kernel : SpectralKernel
        Gaussian, Laplacian, Matérn, or any other with a known spectral measure.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared; the box in which points are placed.
    points : int
        How many points are published.
    public : array of shape (n_public, columns), optional
        Public records like the private ones. At most ``points`` of them become the points, which are
        published, and nothing is spent on finding places. The claim states that they are public; the private
        records themselves are refused.
    location_share : float
        The part of the budget that pays for the places of the points.
    seed : int
        Public: of the places.
    relation
        As for ``Tally.release``.
    columns : list of str, optional
        What the columns are called, in their order; frames are then read by these names.
    **keywords
        ``budget``, ``idempotency_key``, ``insecure_noise_seed`` and ``allow_large_delta`` as for
        ``Tally.release``.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule; ``delta`` is refused.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    Pure ε, exact integers. Under add/remove a tenth of ε pays for the number of records. Of the rest, half of
    ``location_share`` pays for a tree of boxes and half for histograms of the columns (`private_leaves`,
    `column_histograms`). Points drawn from these are public, and so are the features made of them. Their sums
    over the records, integers, move by at most L in L2 (`PrincipalFeatures`), and get a noise vector of
    density ∝ exp(−ε·‖b‖/L), rounded (`hushsum.privacy.calibration.gamma_noise`). Weights are computed from
    noisy sums alone. The ε of the steps add up.

    Notes
    -----
    Zhang, Xiao and Xie, *PrivTree*, SIGMOD 2016; Hardt and Talwar, *On the geometry of differential privacy*,
    STOC 2010; Balog, Tolstikhin and Schölkopf, ICML 2018, for released points in a kernel's space.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> from hushsum.methods import landmarks
    >>> X = np.random.default_rng(0).normal(0.5, 0.05, (5000, 6))
    >>> f = landmarks(X, hs.GaussianKernel(dim=6, bandwidth=0.1), bounds=(0, 1), epsilon=1.0, points=300)
    >>> bool(f([[0.5] * 6])[0] > 10 * abs(f([[0.1] * 6])[0])), f.claim.mechanism
    (True, 'discrete laplace + gamma radius')
    """
    SPECTRAL.check(kernel, NAME)
    declared = DeclaredBox.of(kernel, bounds, columns)
    assert isinstance(kernel, SpectralKernel)
    box = declared.bounds
    number = positive_integer("points", points, at_most=MOST_POINTS)
    share = exact("location_share", location_share)
    if not 0 < share < 1:
        raise UsageError(
            parameter="location_share",
            rule="must be above 0 and below 1",
            got=f"{location_share:g}",
            remedy="try 0.3",
        )
    prepared = OneCallRelease.of(
        METHOD,
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        mechanism=MECHANISM,
        arithmetic=EXACT_INTEGERS,
        assumptions=() if public is None else (PUBLIC_POINTS,),
        **keywords,
    )
    declared.refuse_private(public, X, "public")
    rng = np.random.default_rng(seed)
    given = None
    if public is not None:
        with clipping_allowed(quiet=True):
            given = _chosen(declared.records(public).astype(np.float64), number, rng)
    rows = declared.records(X)

    def make() -> PointsFunction:
        with release_noise(prepared.insecure_noise_seed) as noise:
            count, count_variance, left = prepared.count(noise, len(rows), COUNT_PART)
            moved = 1 if prepared.private_count else 2
            tau = prior_variance()
            if given is None:
                half, left = left * share / 2, left * (1 - share)
                widths = kernel.column_widths()
                leaves = private_leaves(
                    rows, box, widths=widths, epsilon=half, moved=moved, noise=noise, count=count
                )
                histograms = column_histograms(
                    rows, box, widths=widths, epsilon=half, moved=moved, noise=noise, count=count
                )
                places = draw_points(leaves, histograms, number, rng)
                tau = prior_variance(depth_penalty(half, moved) / count)
            else:
                places = given
            features = PrincipalFeatures.of(kernel, places)
            deviation = moved / (float(left) * count)
            features = features.first(best_number(features.eigenvalues, deviation, tau))
            sums, square = features.sums(rows), (moved * LENGTH) ** 2
            noisy, drawn = noise.gamma(sums, square, left)
        unit = features.scale * count
        variance = drawn.variance / unit**2
        weights, prior = fitted_weights(features, noisy / unit, variance)
        return PointsFunction(
            points=np.clip(places + box.centre, box.low, box.high),
            weights=count * weights,
            kernel=kernel,
            bounds=box,
            count=count,
            count_variance=count_variance,
            weight_variance=None,
            feature_errors=FeatureErrors(len(features.eigenvalues), variance, prior),
            claim=prepared.claim,
            method=NAME,
            producer=PRODUCER,
            columns=declared.columns,
        )

    return prepared.released(make, points=number, location_share=str(share), seed=seed)


def _chosen(public: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Different public records, at most so many."""
    distinct = np.unique(public, axis=0)
    return distinct if len(distinct) <= number else rng.permutation(distinct)[:number]


def predict(request: PredictionRequest) -> list[Option]:
    """The option of default sizes, under pure ε in more columns than a grid takes, for records and not
    persons.
    """
    from hushsum.methods.landmark_errors import predicted_error

    bounds, kernel = request.bounds, request.kernel
    if bounds is None or not request.promise.pure or request.per_unit is not None:
        return []
    if not MAX_DIM < bounds.dim <= MOST_COLUMNS:
        return []
    assert isinstance(kernel, SpectralKernel)
    assert request.promise.epsilon is not None
    paid = 0 if request.relation is Relation.REPLACE else COUNT_PART
    left = request.promise.epsilon * (1 - paid)
    lone = request.moves / (float(left * (1 - _LOCATION_SHARE)) * request.records)
    penalty = depth_penalty(left * _LOCATION_SHARE / 2, request.moves) / request.records
    deviation = math.sqrt(2.0) / float(request.promise.epsilon * paid) if paid else 0.0
    densities, likely = request.densities()
    found = [
        predicted_error(kernel.column_widths(), bounds, density=float(each), deviation=lone, penalty=penalty)
        for each in densities
    ]
    noise = np.hypot(
        [each.noise for each in found], NORMAL_MEAN_ABSOLUTE * densities * deviation / request.records
    )
    own = np.array([each.approximation for each in found])
    features = found[len(found) // 2].features
    return [
        Option.of(
            replace(request, count_share=COUNT_PART),
            method=NAME,
            settings={},
            mechanism=str(MECHANISM),
            shape=(features, 1),
            noise=float(likely @ noise),
            approximation=float(likely @ own),
            error=float(likely @ np.hypot(noise, own)),
            number_variance=deviation**2,
            size=8 * DEFAULT_POINTS * (bounds.dim + 1) + HEADER_BYTES,
            seconds=_SECONDS_TO_FIT
            + request.records * DEFAULT_POINTS * (features + bounds.dim) * _NANOSECONDS * 1e-9,
        )
    ]


METHOD = register(
    Method(
        name=NAME,
        role=SPECTRAL,
        release=landmarks,
        pure=True,
        approximate=False,
        relations=tuple(Relation),
        mechanism=MECHANISM,
        arithmetic=EXACT_INTEGERS,
        paper="Zhang, Xiao and Xie 2016; Hardt and Talwar 2010",
        predict=predict,
    )
)
