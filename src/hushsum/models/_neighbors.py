"""How many private records are near a public candidate; and models of vectors with a declared radius."""

from __future__ import annotations

import math
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

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
from hushsum.methods import MONOMIALS
from hushsum.privacy import Promise
from hushsum.records import clipped_to_ball
from hushsum.releases import Answers, ReleasedFunction
from hushsum.tables import MOST_SQUARED

from ._accuracy import PredictedError
from ._base import declared
from ._public_rows import USUAL_RECORDS
from ._table_model import KernelModel, TableModel

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
