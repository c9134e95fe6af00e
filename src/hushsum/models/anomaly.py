"""Outliers: points that are like few of the private records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from hushsum.errors import UsageError, shown
from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.methods.quantiles import private_quantiles
from hushsum.methods.race import race
from hushsum.models.base import Floats, PrivateModel
from hushsum.models.evidence import COUNT_SHARE, says_something
from hushsum.privacy.accounting.mechanisms import together
from hushsum.privacy.calibration import GAUSSIAN, LAPLACE
from hushsum.privacy.claim import Claim, Promise, exact
from hushsum.privacy.selection import PERMUTE_AND_FLIP
from hushsum.releases.answers import Answers, normal_answers
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.tally.tally import Tally

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
    silent: bool


class PrivateOutlierDetector(OutlierMixin, PrivateModel):  # type: ignore[misc]
    """Says which points are like few of the private records: low similarity is an outlier.

    The score of a point is the share of the records that are near it, weighted by similarity, from one
    released sketch. Works in any number of columns; with more than about ``300/ε`` records. Below about
    ``70/ε`` the private count cannot be told from noise: it is silent then, and knows only that points
    outside ``bounds`` are outliers.

    Parameters
    ----------
    epsilon, delta : float
        The budget of the one release; pure ε without ``delta``.
    threshold : float, default 0.01
        Scores below it are outliers: a declared number, which costs nothing. Where the data are uniform over
        the bounds, typical scores are small in many columns: widen the bandwidth, or lower the threshold.
    outlier_share : float, optional
        In place of ``threshold``: which share of the records shall fall below it. That quantile of the
        records' scores is private, so a quarter of ε pays for it, and the records are kept, in secret, until
        the release. It is met up to the error of a private quantile, about ``30/ε`` records, never exactly.
    bandwidth, power : float and int
        Of the Euclidean kernel: what near means. Public.
    rows, width : int
        Of the sketch; a pure-ε release publishes the part of the rows that suits it.
    bounds : (low, high), or a list of one pair for each column
        Declared, never read off the data; records are clipped to it, queries are not: what lies far outside
        is like no record.
    random_state : int, RandomState or None
        Seeds the hash functions, never the noise.
    budget, idempotency_key
        As for ``Tally.release``.

    Attributes
    ----------
    offset_ : float
        The threshold in use; only after the release.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record; neighbours: add/remove. The sketch takes ε, or with ``outlier_share`` ¾ of it and all of
    δ; then one grid point is chosen by permute-and-flip for ¼ of ε, by the ranks of the records' scores under
    the sketch that was already released. A record's score depends on it and on public things alone, so it
    moves the ranks as in any private quantile; the two steps compose, adaptively, to the claim.

    What :meth:`predict` and :meth:`fit_predict` say *of the private records themselves* is as private as the
    records: it is for the owner's eyes.

    Examples
    --------
    >>> import numpy as np
    >>> records = np.random.default_rng(1).normal(0.0, 0.1, size=(20_000, 2))
    >>> model = PrivateOutlierDetector(epsilon=1.0, random_state=0).fit(records)
    >>> model.predict([[0.0, 0.0], [0.9, -0.9]]).tolist()
    [1, -1]
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        threshold: float = 0.01,
        outlier_share: float | None = None,
        bandwidth: float = 0.5,
        power: int = 4,
        rows: int = 1000,
        width: int = 1000,
        bounds: Any = (-1, 1),
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.threshold = threshold
        self.outlier_share = outlier_share
        self.bandwidth = bandwidth
        self.power = power
        self.rows = rows
        self.width = width
        self.bounds = bounds
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def _start(self, seed: int) -> _Secret:
        self._check_threshold()
        kernel = EuclideanKernel(dim=self.n_features_in_, bandwidth=self.bandwidth, power=self.power)
        tally = race(kernel, rows=self.rows, width=self.width, seed=seed, bounds=self._box())
        return _Secret(tally, [])

    def _check_threshold(self) -> None:
        if self.outlier_share is None:
            if not isinstance(self.threshold, int | float) or not 0.0 <= self.threshold <= 1.0:
                raise UsageError(f"threshold must be from 0 to 1, got {shown(self.threshold)}; try 0.01")
        elif not 0 < exact("outlier_share", self.outlier_share) <= Fraction(1, 2):
            raise UsageError(
                f"outlier_share must be above 0 and at most 0.5, got {shown(self.outlier_share)}; try 0.05"
            )

    def _count(self, secret: _Secret, X: Floats, y: NDArray[Any] | None) -> None:
        secret.tally.add(X)
        if self.outlier_share is not None:
            secret.records.append(X.copy())

    def _claim(self, promise: Promise) -> Claim:
        claim = super()._claim(promise)
        if self.outlier_share is None:
            return claim
        return replace(claim, mechanism=together(LAPLACE if promise.pure else GAUSSIAN, PERMUTE_AND_FLIP))

    def _draw(self, secret: _Secret, promise: Promise) -> Bundle:
        assert promise.epsilon is not None
        paid = QUANTILE_SHARE * promise.epsilon if self.outlier_share is not None else Fraction(0)
        share: Any = {"epsilon": promise.epsilon - paid, "delta": promise.delta or None}
        function = secret.tally.release(**share, count_share=COUNT_SHARE)
        offset = float(self.threshold)
        if self.outlier_share is not None:
            scores = np.concatenate([function(records) for records in secret.records])
            quantile: Any = {"epsilon": paid}
            chosen = private_quantiles(
                scores[:, None], self.outlier_share, bounds=(0.0, 1.0), grid=_THRESHOLDS, **quantile
            )
            offset = chosen.values[0][0]
        return self._bundle(promise, parts={"similarity": function}, arrays={"offset": np.array([offset])})

    def _open(self, bundle: Bundle) -> _Reading:
        function = bundle.parts["similarity"]
        return _Reading(function, float(bundle.arrays["offset"][0]), not says_something([function]))

    def score_samples(self, X: object) -> Floats:
        """The share of the records that are near each point, shape (n_queries,); the lower, the stranger."""
        queries = self._queries(X)
        reading: _Reading = self._reading()
        if reading.silent:
            inside: Floats = (queries == self._within_bounds(queries)).all(axis=1).astype(np.float64)
            return inside
        return reading.function(queries)

    def query(self, X: object, *, level: float = 0.95) -> Answers:
        """The score of each point with standard error and interval; without them where the model is
        silent.
        """
        queries = self._queries(X)
        reading: _Reading = self._reading()
        if reading.silent:
            scores = self.score_samples(X)
            return normal_answers(scores, np.full(len(scores), np.nan), level)
        return reading.function.query(queries, level=level)

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
