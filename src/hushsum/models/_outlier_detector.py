"""Outliers: points that are like few of the private records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from hushsum._types import Box, Floats
from hushsum.declaration import FROM_PUBLIC, Parameter
from hushsum.kernels import EuclideanKernel, InnerProductKernel, Kernel, in_scale
from hushsum.methods import monomials, private_quantiles, race
from hushsum.models._accuracy import (
    MODEL_COUNT_SHARE,
    PLANNED,
    PredictedError,
    enough_records,
    error_of_hash_rows,
)
from hushsum.models._base import Drawn, PrivateModel, declared
from hushsum.models._parameters import SCALE
from hushsum.models._public_rows import USUAL_RECORDS, visible_bandwidth
from hushsum.models._table_model import (
    DECISIONS,
    DENSITY_RULE,
    NEAR,
    POWER,
    RADIUS,
    ROWS,
    WIDTH,
    embedding_advice,
    in_ball,
    inner_product,
    noise_of,
)
from hushsum.privacy import LAPLACE, PERMUTE_AND_FLIP, Mechanism, Promise
from hushsum.records import clipped_to_ball
from hushsum.releases import Answers, Bundle, CoefficientFunction, ReleasedFunction, normal_answers
from hushsum.tables import Monomials
from hushsum.tally import Tally

QUANTILE_SHARE = Fraction(1, 4)
"""The part of ε that pays for the threshold, where it is a quantile of the records' own scores."""

_THRESHOLDS: Floats = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 601)])
"""What a paid threshold may be: even in ratios, since scores range over orders of magnitude."""


@dataclass(slots=True, repr=False, eq=False)
class _Secret:
    """The tally, and the records themselves where their scores are needed for the threshold."""

    tally: Tally
    records: list[Floats]


@dataclass(frozen=True, slots=True)
class _Reading:
    function: ReleasedFunction
    offset: float
    too_few: bool


@declared
class PrivateOutlierDetector(OutlierMixin, PrivateModel):  # type: ignore[misc]
    """Predicts which points are like few of the private records: low similarity is an outlier.

    The score of a point is the share of the records that are near it, weighted by similarity, from one
    released sketch; with more than about ``300/ε`` records. Below about
    ``70/ε`` the private count cannot be distinguished from noise: it then knows only that points
    outside ``bounds`` are outliers.

    For vectors of a text or image model, in hundreds of columns, declare ``radius``: hash rows see nothing
    there. The score is then the mean squared cosine of the angle to the records, from their second moments,
    or, where noise would hide these, the mean cosine. Such scores have no natural threshold: give
    ``contamination``.

    Attributes
    ----------
    offset_ : float
        The threshold in use; only after the release.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record; neighbours: add/remove. The sketch takes ε, or with ``contamination`` ¾ of it and all of
    δ; then one grid point is chosen by permute-and-flip for ¼ of ε, by the ranks of the records' scores under
    the sketch that was already released. A record's score depends on it and on public things alone, so it
    moves the ranks as in any private quantile; the two steps compose, adaptively, to the claim.

    What :meth:`predict` says *of the private records themselves* is as private as the records.

    Examples
    --------
    >>> import numpy as np
    >>> records = np.random.default_rng(1).normal(0.0, 0.1, size=(20_000, 2))
    >>> model = PrivateOutlierDetector(epsilon=1.0, random_state=0).fit(records)
    >>> model.predict([[0.0, 0.0], [0.9, -0.9]]).tolist()
    [1, -1]
    """

    COMMAND = "outliers"
    DEFAULT_BANDWIDTH = 0.25
    novelty = True
    """As in scikit-learn: the detector is for new points. Of the records themselves, the share below the
    threshold is ``contamination`` up to the error of a private quantile only.
    """
    threshold: Annotated[
        float,
        Parameter(
            help="Scores below it are outliers: a declared number, which costs nothing. Where the "
            "records are "
            "uniform over the bounds, typical scores are small in many columns: widen the bandwidth, or "
            "lower the threshold.",
            at_least=0,
            at_most=1,
        ),
    ] = 0.01
    contamination: Annotated[
        float | None,
        Parameter(
            help="In place of threshold: the share of the records that shall fall below it. That "
            "quantile of the "
            "records' scores is private: a quarter of ε pays for it, and the records are kept, in secret, "
            "until the release. It is met up to the error of a private quantile, about 30/ε records, never "
            "exactly.",
            above=0,
            at_most=0.5,
        ),
    ] = None
    bandwidth: Annotated[
        float | str | None, replace(NEAR, help=NEAR.help + DENSITY_RULE, choices=(FROM_PUBLIC,))
    ] = None
    scale: Annotated[str | None, SCALE] = None
    power: Annotated[int, POWER] = 4
    rows: Annotated[int, ROWS] = 1000
    width: Annotated[int, WIDTH] = 1000
    radius: Annotated[float | None, RADIUS] = None

    @property
    def fit_predict(self) -> NoReturn:
        """Not available, as in scikit-learn's novelty detectors."""
        raise AttributeError(
            "fit_predict is not available: the detector is for new points, and what it reports about the "
            "private records themselves is as private as they are; call fit, then predict"
        )

    def _start(self, seed: int) -> _Secret:
        if self.radius is not None:
            promise = self._promise()
            return _Secret(monomials(inner_product(self.n_features_in_, self.radius, promise, DECISIONS)), [])
        kernel = self._hash_kernel(self.n_features_in_, self.effective("bandwidth"))
        tally = race(
            kernel,
            rows=self.rows,
            width=self.width,
            seed=seed,
            bounds=self.column_bounds(),
            columns=self._table_columns(),
        )
        return _Secret(tally, [])

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernel of hash rows, where there are any."""
        if self.radius is not None:
            return []
        return [self._hash_kernel(n_features, self.effective("bandwidth", n_features))]

    def kept_per_record(self, n_features: int) -> int:
        return 0 if self.contamination is None else n_features

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        if self.radius is not None:
            error = noise_of(inner_product(n_features, self.radius, promise, DECISIONS), records, promise)
            return PredictedError("score", error, records, PLANNED)
        kernel = self._hash_kernel(n_features, self.effective("bandwidth", n_features))
        error = self._error_of(kernel, records, promise, self.column_bounds(n_features))
        return PredictedError("score", error, records, PLANNED)

    def _hash_kernel(self, dim: int, bandwidth: float) -> Kernel:
        plain = EuclideanKernel(dim=dim, bandwidth=bandwidth, power=self.power)
        return in_scale(plain, self.effective("scale", dim), self.column_bounds(dim))

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        return embedding_advice(n_features, promise) if self.radius is None else []

    def _error_of(self, kernel: Kernel, records: int, promise: Promise, box: Box) -> float:
        return error_of_hash_rows(kernel, records, promise, bounds=box, rows=self.rows, width=self.width)

    def _public_bandwidth(self, rows: Floats, promise: Promise) -> float:
        dim, box = rows.shape[1], self.column_bounds(rows.shape[1])
        return visible_bandwidth(
            lambda bandwidth: self._hash_kernel(dim, bandwidth),
            rows,
            USUAL_RECORDS,
            lambda kernel: self._error_of(kernel, USUAL_RECORDS, promise, box),
        )

    def _count(self, secret: _Secret, X: Floats, y: NDArray[Any] | None) -> None:
        secret.tally.add(X)
        if self.contamination is not None:
            secret.records.append(X.copy())

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        # Hash rows, of which a record moves one cell each, always have less variance by Laplace noise.
        hashed = promise.pure and self.radius is None
        noise = Mechanism.of(LAPLACE) if hashed else super()._mechanism(promise, n_features)
        return noise if self.contamination is None else noise + Mechanism.of(PERMUTE_AND_FLIP)

    def _draw(self, secret: _Secret, promise: Promise) -> Bundle:
        assert promise.epsilon is not None
        paid = QUANTILE_SHARE * promise.epsilon if self.contamination is not None else Fraction(0)
        share: Any = {"epsilon": promise.epsilon - paid, "delta": promise.delta or None}
        function = secret.tally.release(**share, count_share=MODEL_COUNT_SHARE)
        offset = float(self.threshold)
        if self.contamination is not None:
            scores = np.concatenate([_scores_alone(function, records) for records in secret.records])
            quantile: Any = {"epsilon": paid}
            chosen = private_quantiles(
                scores[:, None], self.contamination, bounds=(0.0, 1.0), grid=_THRESHOLDS, **quantile
            )
            offset = chosen.values[0][0]
        return self._bundle(Drawn({"similarity": function}, {"offset": np.array([offset])}))

    def _part_columns(self) -> dict[str, int]:
        return {"similarity": self.n_features_in_}

    def _open(self, bundle: Bundle) -> _Reading:
        function = bundle.parts["similarity"]
        return _Reading(function, float(bundle.arrays["offset"][0]), not enough_records([function]))

    def score_samples(self, X: object) -> Floats:
        """The share of the records that are near each point, shape (n_queries,); the lower, the stranger."""
        queries = self._queries(X)
        reading: _Reading = self._reading()
        if reading.too_few:
            inside: Floats = (queries == self._within_bounds(queries)).all(axis=1).astype(np.float64)
            return inside
        return reading.function(in_ball(reading.function, queries))

    def query(self, X: object, *, level: float = 0.95) -> Answers:
        """The score of each point with standard error and interval; without them where there are
        too few records.
        """
        queries = self._queries(X)
        reading: _Reading = self._reading()
        if reading.too_few:
            scores = self.score_samples(X)
            return normal_answers(scores, np.full(len(scores), np.nan), level, queries)
        return reading.function.query(in_ball(reading.function, queries), level=level)

    def decision_function(self, X: object) -> Floats:
        """The score less the threshold, shape (n_queries,); negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: object) -> NDArray[np.int64]:
        """1 for points like the records, −1 for outliers, shape (n_queries,)."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    @property
    def offset_(self) -> float:
        """The threshold in use; only after the release."""
        return float(self.released_.arrays["offset"][0])


def _scores_alone(function: ReleasedFunction, records: Floats) -> Floats:
    """Scores of private records, each computed from its record alone, bit for bit.

    A product of matrices would give a record other last bits beside other records, and so move the rank of
    more than one record. Here every record is multiplied by itself, in NumPy's own sums of a fixed order.
    """
    if not isinstance(function, CoefficientFunction) or not isinstance(function.basis, Monomials):
        return function(records)
    basis, kernel = function.basis, function.kernel
    assert isinstance(kernel, InnerProductKernel)
    units = clipped_to_ball(records.astype(np.float64), kernel.radius) / kernel.radius
    squares = kernel.inner_degree() == 2
    sums = basis.moments(function.table) if squares else function.table[0] / basis.unit
    scores = np.empty(len(units))
    for place, row in enumerate(units):
        products = np.sum(sums * row, axis=-1)
        scores[place] = np.sum(products * row) if squares else products
    return np.asarray(scores / max(function.count, 1.0))
