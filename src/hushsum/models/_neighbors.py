"""How many private records are near a point: neighbours of public candidates, and outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from hushsum._types import Box, Floats
from hushsum.declaration import setting
from hushsum.errors import UsageError, shown
from hushsum.kernels import (
    ColumnKernel,
    DotProductKernel,
    InnerProductKernel,
    Kernel,
    PolynomialKernel,
    positive_integer,
)
from hushsum.methods import MONOMIALS, private_quantiles
from hushsum.privacy import LAPLACE, PERMUTE_AND_FLIP, Mechanism, Promise
from hushsum.records import clipped_to_ball
from hushsum.releases import Answers, Bundle, CoefficientFunction, ReleasedFunction, normal_answers
from hushsum.tables import MOST_SQUARED, Monomials
from hushsum.tally import Tally

from ._accuracy import MODEL_COUNT_SHARE, PLANNED, PredictedError, enough_records, terms_of
from ._base import Drawn, KeptRecords, declared
from ._public_rows import USUAL_RECORDS
from ._table_model import POWER, KernelModel, TableModel

_MANY_COLUMNS: Final = 32


@declared
class EmbeddingModel(KernelModel):
    """A model of records that a radius may be declared for: it then compares them by inner products.

    A subclass says with ``CLEAR`` how many times below 1/√columns the noise of a squared inner product must
    be, for a usual number of records, so that squares are taken; otherwise inner products are.
    """

    CLEAR: ClassVar[float]

    radius: float | None = setting(
        None,
        "For vectors of a model: the length that no record exceeds, declared; 1 for vectors of length 1. "
        "Scores are then mean squared inner products, or mean inner products where the predicted noise is "
        "large beside 1/√columns; bandwidth, power, rows and width are not used.",
        above=0,
    )

    def _kernel(self, n_features: int | None = None, bandwidth: float | None = None) -> Kernel:
        if self.radius is None:
            return super()._kernel(n_features, bandwidth)
        dim, radius, promise = self._width(n_features), float(self.radius), self._promise()
        squares = PolynomialKernel(dim=dim, radius=radius)
        few = dim <= MOST_SQUARED
        if few and self.CLEAR * self._error_of(squares, USUAL_RECORDS, promise, None) <= 1.0 / math.sqrt(dim):
            return squares
        return DotProductKernel(dim=dim, radius=radius)

    def _table_method(self, kernel: Kernel) -> str:
        return super()._table_method(kernel) if self.radius is None else MONOMIALS

    def _error_of(self, kernel: Kernel, records: int, promise: Promise, bounds: Box | None) -> float:
        return super()._error_of(kernel, records, promise, bounds if self.radius is None else None)

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        if self.radius is not None or n_features <= _MANY_COLUMNS:
            return []
        advice = [
            f"with {n_features} columns hash rows count near-duplicates and little else; for vectors of a "
            "text or image model declare radius, such as 1"
        ]
        return [*advice, "a delta lowers the noise of hash rows many times"] if promise.pure else advice


def in_ball(function: ReleasedFunction, queries: Floats) -> Floats:
    """Queries shortened to the radius of inner products: a long vector is not like many records."""
    kernel = function.kernel
    return clipped_to_ball(queries, kernel.radius) if isinstance(kernel, InnerProductKernel) else queries


@declared
class PrivateNeighbors(EmbeddingModel, TableModel):
    """How many private records are near a public candidate, by one released kernel sum.

    A record counts as much as it is near: 1 where it coincides with the candidate, k(x, q) elsewhere, with a
    tail that reaches far. So the count is a weighted one; raise ``power`` for a sharper edge. It never says
    *which* records are near, and no query can ask for it.

    For vectors of a text or image model, in hundreds of columns, declare ``radius``: hash rows count
    near-duplicates there, and little else that stands out of their noise. A record then counts with the
    squared cosine of its angle to the candidate, so that even unrelated ones count about 1/columns each, or,
    where noise would hide squares, with the cosine. Compare candidates with each other, or choose
    ``min_records`` by the counts of public candidates.

    Privacy
    -------
    One release of one sketch; every question is answered from it and spends nothing. Candidates must be
    public: which one is queried is not protected.

    Notes
    -----
    Standard errors hold for candidates chosen without regard to the hash functions: a list that is public
    anyway, not one found by optimising the counts.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(0.5, 0.05, (5000, 2))
    >>> model = PrivateNeighbors(bandwidth=0.5, min_records=1000, random_state=0).fit(X)
    >>> model.predict([[0.5, 0.5], [-0.9, -0.9]]).tolist()
    [1, 0]
    >>> counts, candidates = model.top_candidates([[-0.9, -0.9], [0.5, 0.5], [0.0, 0.0]], n_candidates=2)
    >>> candidates.tolist()
    [1, 2]
    """

    COMMAND = "neighbors"
    DEFAULT_BANDWIDTH = 0.25
    CLEAR = 5.0
    # Looked at on AG News: squares rank candidates better at ε = 0.1 too.
    min_records: float = setting(10.0, "How many near records make a candidate a neighbour of the records.")
    level: float = setting(0.95, "Of intervals and decisions.", above=0, below=1)

    def _candidates(self, X: object) -> Floats:
        """Checked candidates, shortened to the radius if there is one."""
        return in_ball(self._reading(), self._queries(X))

    def decision_function(self, X: object) -> Floats:
        """The estimated number of near records less ``min_records``, shape (n_samples,).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public candidates.
        """
        counts: Floats = self._reading().sum(self._candidates(X))
        return counts - self.min_records

    def predict(self, X: object) -> NDArray[np.int64]:
        """1 where at least ``min_records`` are estimated to be near, 0 elsewhere, shape (n_samples,)."""
        return (self.decision_function(X) >= 0.0).astype(np.int64)

    def query(self, X: object, *, level: float | None = None) -> Answers:
        """The weighted number of near records with standard error and interval, for each candidate; at
        ``level``, or that of the model.
        """
        queries = self._candidates(X)
        answers: Answers = self._reading().query(
            queries, of="sum", level=self.level if level is None else level
        )
        return answers

    def decide(self, X: object) -> NDArray[np.int64]:
        """1 where at least ``min_records`` are surely near, −1 where surely fewer are, 0 where the interval
        cannot tell.

        Sure is meant at ``level`` for the whole list together: each candidate is judged at 1 − (1 − level)/n,
        n of them.
        """
        answers = self.query(X, level=1.0 - (1.0 - self.level) / len(self._queries(X)))
        surely = (answers.lower >= self.min_records).astype(np.int64)
        return surely - (answers.upper < self.min_records).astype(np.int64)

    def top_candidates(self, X: object, n_candidates: int = 5) -> tuple[Floats, NDArray[np.int64]]:
        """The candidates with the most near records: their counts, and their positions in ``X``, best first.

        The count of a candidate that was picked for being the highest is on average too high; ask
        :meth:`query` for the whole list where that matters.
        """
        number = positive_integer("n_candidates", n_candidates, at_most=1 << 30)
        counts = self.decision_function(X) + self.min_records
        best: NDArray[np.int64] = np.argsort(-counts, kind="stable")[:number]
        return counts[best], best

    def at_most_within(self, X: object, radius: float) -> Floats:
        """How many records there can be at most within ``radius`` of each candidate, at ``level``.

        Every record within the radius adds at least k(radius) to the kernel sum, so there are at most
        f(q)/k(radius); the upper end of the interval stands for f(q).
        """
        if not 0.0 <= radius < np.inf:
            raise UsageError(
                "radius", "must be a distance", got=shown(radius), remedy="give a number from 0 on"
            )
        kernel = self.function_.kernel
        if not isinstance(kernel, ColumnKernel):
            got = f"the {kernel.name} kernel"
            raise UsageError("kernel", "must have a radius", got=got, remedy="use euclidean or manhattan")
        ends = np.zeros((2, self.n_features_in_))
        ends[1, 0] = radius
        least = float(kernel.similarity(ends[:1], ends[1:])[0, 0])
        # A one-sided bound at level is the upper end of an interval at 2·level − 1.
        upper = self.query(X, level=max(2.0 * self.level - 1.0, 1e-6)).upper
        return np.maximum(upper, 0.0) / least

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        predicted = super()._predicted_error(records, n_features, promise)
        return PredictedError("count", predicted.error * records, records, predicted.note)


QUANTILE_SHARE = Fraction(1, 4)
"""The part of ε that pays for the threshold, where it is a quantile of the records' own scores."""

# What a paid threshold may be: even in ratios, since scores range over orders of magnitude.
_THRESHOLDS: Floats = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 601)])


@dataclass(frozen=True, slots=True)
class _Reading:
    function: ReleasedFunction
    offset: float
    too_few: bool


@declared
class PrivateOutlierDetector(OutlierMixin, EmbeddingModel):  # type: ignore[misc]
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
    changes the ranks as in any private quantile; the two steps compose, adaptively, to the claim.

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
    CLEAR = 20.0
    # Looked at on two of the four classes of AG News against a third one: outliers are decided better by
    # squares at ε = 1, and by products at 0.1.
    novelty = True
    """As in scikit-learn: the detector is for new points. Of the records themselves, the share below the
    threshold is ``contamination`` up to the error of a private quantile only.
    """
    threshold: float = setting(
        0.01,
        "Scores below it are outliers: a declared number, which costs nothing. Where the records are "
        "uniform over the bounds, typical scores are small in many columns: widen the bandwidth, or lower "
        "the threshold.",
        at_least=0,
        at_most=1,
    )
    contamination: float | None = setting(
        None,
        "In place of threshold: the fraction of the records that shall fall below the threshold. This "
        "quantile of the records' scores is private: a quarter of ε pays for it, and the records are kept, "
        "in secret, until the release. The fraction is met up to the error of a private quantile, about "
        "30/ε records, never exactly.",
        above=0,
        at_most=0.5,
    )
    power: int = setting(4, POWER)

    @property
    def fit_predict(self) -> NoReturn:
        """Not available, as in scikit-learn's novelty detectors."""
        raise AttributeError(
            "fit_predict is not available: the detector is for new points, and what it reports about the "
            "private records themselves is as private as they are; call fit, then predict"
        )

    def _start(self, seed: int) -> tuple[Tally, KeptRecords]:
        """The tally, and the records themselves where their scores are needed for the threshold."""
        return self._empty(seed), KeptRecords()

    def _count(self, secret: tuple[Tally, KeptRecords], X: Floats, y: Any) -> None:
        tally, kept = secret
        tally.add(X)
        if self.contamination is not None:
            kept.add(X.copy(), np.empty(len(X)))

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernel of hash rows, where there are any."""
        return [] if self.radius is not None else super().compared_by(n_features)

    def kept_per_record(self, n_features: int) -> int:
        return 0 if self.contamination is None else n_features

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        box = self.column_bounds(n_features)
        error = self._error_of(self._kernel(n_features), records, promise, box)
        return PredictedError("score", error, records, PLANNED)

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        # Hash rows, of which a record changes one cell each, always have less variance by Laplace noise.
        hashed = promise.pure and self.radius is None
        noise = Mechanism.of(LAPLACE) if hashed else super()._mechanism(promise, n_features)
        return noise if self.contamination is None else noise + Mechanism.of(PERMUTE_AND_FLIP)

    def _draw(self, secret: tuple[Tally, KeptRecords], promise: Promise) -> Drawn:
        tally, kept = secret
        assert promise.epsilon is not None
        paid = QUANTILE_SHARE * promise.epsilon if self.contamination is not None else Fraction(0)
        rest = terms_of(replace(promise, epsilon=promise.epsilon - paid))
        function = tally.release(**rest, count_share=MODEL_COUNT_SHARE)
        offset = float(self.threshold)
        if self.contamination is not None:
            scores = _scores_alone(function, kept.all()[0])
            quantile: Any = {"epsilon": paid}
            chosen = private_quantiles(
                scores[:, None], self.contamination, bounds=(0.0, 1.0), grid=_THRESHOLDS, **quantile
            )
            offset = chosen.values[0][0]
        return Drawn({"similarity": function}, {"offset": np.array([offset])})

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
