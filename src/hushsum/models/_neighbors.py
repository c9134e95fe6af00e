"""Which public candidates are close to many private records."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.declaration import Parameter
from hushsum.errors import UsageError, shown
from hushsum.kernels import ColumnKernel, Kernel
from hushsum.models._accuracy import PredictedError
from hushsum.models._base import declared
from hushsum.models._table_model import (
    METHOD,
    RADIUS,
    RANKS,
    TableModel,
    embedding_advice,
    in_ball,
    inner_product,
    noise_of,
)
from hushsum.privacy import Promise
from hushsum.releases import Answers


@declared
class PrivateNeighbors(TableModel):
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
    min_records: Annotated[
        float,
        Parameter(
            help="How many near records make a candidate a neighbour of the records.",
        ),
    ] = 10.0
    level: Annotated[float, Parameter(help="Of intervals and decisions.", above=0, below=1)] = 0.95
    radius: Annotated[float | None, RADIUS] = None

    def _kernel(self, n_features: int | None = None, bandwidth: float | None = None) -> Kernel:
        if self.radius is None:
            return super()._kernel(n_features, bandwidth)
        promise = self._promise()
        return inner_product(self._width(n_features), self.radius, promise, RANKS)

    def _table_method(self, kernel: Kernel) -> str:
        return super()._table_method(kernel) if self.radius is None else METHOD

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        return embedding_advice(n_features, promise) if self.radius is None else []

    def _error_of(self, kernel: Kernel, records: int, promise: Promise, bounds: Box) -> float:
        if self.radius is None:
            return super()._error_of(kernel, records, promise, bounds)
        return noise_of(kernel, records, promise)

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
        queries = self._candidates(X)
        counts: Floats = self._reading().sum(queries)
        return counts - self.min_records

    def predict(self, X: object) -> NDArray[np.int64]:
        """1 where at least ``min_records`` are estimated to be near, 0 elsewhere, shape (n_samples,)."""
        return (self.decision_function(X) >= 0.0).astype(np.int64)

    def query(self, X: object, *, level: float | None = None) -> Answers:
        """The weighted number of near records with standard error and interval, for each candidate; at
        ``level``, or that of the model.
        """
        queries = self._candidates(X)
        chosen = self.level if level is None else level
        answers: Answers = self._reading().query(queries, of="sum", level=chosen)
        return answers

    def decide(self, X: object) -> NDArray[np.int64]:
        """1 where at least ``min_records`` are surely near, −1 where surely fewer are, 0 where the interval
        cannot tell.

        Sure is meant at ``level`` for the whole list together: each candidate is judged at 1 − (1 − level)/n,
        n of them.
        """
        queries = self._candidates(X)
        each = 1.0 - (1.0 - self.level) / len(queries)
        answers: Answers = self._reading().query(queries, of="sum", level=each)
        surely = (answers.lower >= self.min_records).astype(np.int64)
        return surely - (answers.upper < self.min_records).astype(np.int64)

    def top_candidates(self, X: object, n_candidates: int = 5) -> tuple[Floats, NDArray[np.int64]]:
        """The candidates with the most near records: their counts, and their positions in ``X``, best first.

        The count of a candidate that was picked for being the highest is on average too high; ask
        :meth:`query` for the whole list where that matters.
        """
        if (
            isinstance(n_candidates, bool)
            or not isinstance(n_candidates, int | np.integer)
            or n_candidates < 1
        ):
            raise UsageError(
                "n_candidates", "must be a positive integer", got=shown(n_candidates), remedy="try 5"
            )
        counts = self.decision_function(X) + self.min_records
        best: NDArray[np.int64] = np.argsort(-counts, kind="stable")[:n_candidates]
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
        queries = self._candidates(X)
        f = self._reading()
        if not isinstance(f.kernel, ColumnKernel):
            raise UsageError(
                "kernel",
                "must have a radius",
                got=f"the {f.kernel.name} kernel",
                remedy="use euclidean or manhattan",
            )
        ends = np.zeros((2, self.n_features_in_))
        ends[1, 0] = radius
        least = float(f.kernel.similarity(ends[:1], ends[1:])[0, 0])
        # A one-sided bound at level is the upper end of an interval at 2·level − 1.
        upper: Floats = f.query(queries, of="sum", level=max(2.0 * self.level - 1.0, 1e-6)).upper
        return np.maximum(upper, 0.0) / least

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        predicted = super()._predicted_error(records, n_features, promise)
        return PredictedError("count", predicted.error * records, records, predicted.note)
