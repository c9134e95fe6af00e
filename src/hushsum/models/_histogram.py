"""A private histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.declaration import Parameter
from hushsum.errors import UsageError
from hushsum.kernels import GaussianKernel
from hushsum.models._accuracy import NOISE, PredictedError, terms_of
from hushsum.models._base import Drawn, PrivateModel, declared
from hushsum.privacy import Mechanism, Promise, Relation, ReleaseRequest
from hushsum.records import MOST_CELLS, Bounds, CellGrid
from hushsum.releases import Answers, Bundle, CoefficientFunction, ReleasedFunction, normal_answers
from hushsum.tables import Bins
from hushsum.tally import Tally

PART = "counts"
_MOST_AUTO_BINS = 32
_MOST_AUTO_CELLS = 4096
_SMALLEST = 1e-100


@declared
class PrivateHistogram(PrivateModel):
    """How many records lie in each of some declared bins, released once.

    Works well in one to three columns with bins that hold many records: the noise of a bin does not depend on
    how many bins there are. In more columns most bins are empty, and what is seen in them is noise.

    Attributes
    ----------
    counts_ : array of shape (bins of column 1, bins of column 2, …)
        Noisy counts; negative ones stay, so that sums over bins are unbiased. Only after the release.
    count_stderr_ : float
        The standard deviation of the noise of one bin; only after the release.
    bin_edges_ : list of arrays
        One for each column.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record. A record present or absent moves one bin by 1: Δ1 = Δ2 = 1. A record replaced moves two:
    Δ1 = 2, Δ2 = √2. (Dandekar, Basu and Bressan 2019 take 2 for a Gaussian, which is the L1 value.)

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(1).normal(40, 10, size=(20_000, 1))
    >>> model = PrivateHistogram(epsilon=1.0, bins=10, bounds=(0, 100)).fit(ages)
    >>> bool(abs(model.predict([[45.0]])[0] - 0.034) < 0.002)
    True
    >>> model.counts_.shape
    (10,)
    """

    COMMAND = "histogram"
    bins: Annotated[
        str | int | Sequence[int],
        Parameter(
            help="How many equal bins each column is cut into: one number, or a list of one for each column. "
            "Public. 'auto': 32, fewer in several columns so that there are at most 4096 in all.",
            choices=("auto",),
            at_least=1,
            several=True,
        ),
    ] = "auto"
    relation: Annotated[
        str,
        Parameter(
            help="Which neighbours are protected. Under replace the number of records is public.",
            choices=("add/remove", "replace"),
        ),
    ] = "add/remove"

    def _basis(self, dim: int) -> Bins:
        box = Bounds.of(self.column_bounds(dim), dim)
        assert box is not None
        grid = CellGrid.of(box, self._bins(dim), most_cells=MOST_CELLS)
        return Bins(grid.bins, box, self._table_columns())

    def _bins(self, dim: int) -> int | Sequence[int]:
        if not isinstance(self.bins, str):
            return self.bins
        return max(1, min(_MOST_AUTO_BINS, int(_MOST_AUTO_CELLS ** (1.0 / dim))))

    def _start(self, seed: int) -> Tally:
        return self._tally(self._basis(self.n_features_in_))

    def _tally(self, basis: Bins) -> Tally:
        # The kernel reads sums of similarities off the same counts; here the counts alone are used.
        return Tally(basis, GaussianKernel(dim=basis.bounds.dim, bandwidth=float(basis.grid.width.max())))

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        basis = self._basis(n_features)
        # Nobody's record is in it, and the noise of a bin does not depend on records.
        empty: Any = self._released(self._tally(basis))
        stderr = float(empty.noise.variance**0.5)
        return PredictedError(
            "density", stderr / (records * float(np.prod(basis.grid.width))), records, NOISE
        )

    def _count(self, secret: Tally, X: Floats, y: NDArray[Any] | None) -> None:
        secret.add(X)

    def _draw(self, secret: Tally, promise: Promise) -> Bundle:
        return self._bundle(Drawn({PART: self._released(secret)}))

    def _released(self, secret: Tally) -> ReleasedFunction:
        return secret.release(**self._terms())

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        if n_features is None or not promise.pure:
            return super()._mechanism(promise, n_features)
        return self._tally(self._basis(n_features)).prepare(ReleaseRequest(**self._terms())).claim.mechanism

    def _terms(self) -> dict[str, Any]:
        """What one record may cost. A replaced person may have had fewer records, so their number is private
        then, and records come and go one by one.
        """
        relation = self.relation if self.max_per_unit is None else str(Relation.ADD_REMOVE)
        return {**terms_of(self._promise()), "relation": relation}

    def _relation(self) -> Relation:
        return Relation.of(self.relation)

    def _steps(self) -> int:
        replaced = self._relation() is Relation.REPLACE and self.max_per_unit is not None
        return (2 if replaced else 1) * super()._steps()

    def _part_columns(self) -> dict[str, int]:
        return {PART: self.n_features_in_}

    def _open(self, bundle: Bundle) -> CoefficientFunction:
        part = bundle.parts[PART]
        if not isinstance(part, CoefficientFunction) or not isinstance(part.basis, Bins):
            raise UsageError(
                "the model's part must be a released histogram", got="another", remedy="fit it again"
            )
        return part

    @property
    def counts_(self) -> Floats:
        """Noisy counts, one axis for each column; only after the release."""
        part = self._reading()
        assert isinstance(part.basis, Bins)
        counts: Floats = part.table.reshape(part.basis.bins).astype(np.float64)
        return counts

    @property
    def count_stderr_(self) -> float:
        """The standard deviation of the noise of one bin; only after the release."""
        return float(self._reading().noise.variance ** 0.5)

    @property
    def bin_edges_(self) -> list[Floats]:
        """The edges of the bins of each column, shape (bins + 1,) each; only after the release."""
        part = self._reading()
        assert isinstance(part.basis, Bins)
        box = part.basis.bounds
        return [
            np.linspace(low, high, bins + 1)
            for low, high, bins in zip(box.low, box.high, part.basis.bins, strict=True)
        ]

    def score_samples(self, X: object) -> Floats:
        """The logarithm of the density at each point, shape (n_queries,).

        A bin below its standard error is raised to it, so the logarithm is finite.
        """
        logarithms: Floats = np.log(self.predict(X))
        return logarithms

    def predict(self, X: object) -> Floats:
        """The density at each point, shape (n_queries,): its bin's count over the number of records and the
        bin's volume. Outside of ``bounds`` it is what an empty bin has.
        """
        part, counts, unit = self._counted(self._queries(X))
        floor = max(part.noise.variance**0.5, _SMALLEST)
        densities: Floats = np.maximum(counts, floor) / unit
        return densities

    def query(self, X: object, *, level: float = 0.95) -> Answers:
        """The density at each point with standard error and interval; not raised to its error as
        :meth:`predict` has it, so noise may make it negative. Outside of ``bounds`` it is 0.
        """
        queries = self._queries(X)
        part, counts, unit = self._counted(queries)
        # Of a ratio, where the number of records is noisy as well.
        variance = part.noise.variance + (counts * part.count_stderr / max(part.count, 1.0)) ** 2
        return normal_answers(counts / unit, np.sqrt(variance) / unit, level, queries)

    def _counted(self, queries: Floats) -> tuple[CoefficientFunction, Floats, float]:
        """The counts of the bins of queries, and what divides a count to make it a density."""
        part: CoefficientFunction = self._reading()
        basis = part.basis
        assert isinstance(basis, Bins)
        low, high = np.array(basis.bounds.low), np.array(basis.bounds.high)
        inside = np.all((queries >= low) & (queries <= high), axis=1)
        grid = basis.grid
        cells = grid.flat(grid.codes(basis.prepare_queries(queries).arrays[0]))
        counts = np.where(inside, part.table[0, cells].astype(np.float64), 0.0)
        return part, counts, max(part.count, 1.0) * float(np.prod(grid.width))

    def score(self, X: object, y: object = None) -> float:
        """The total log-likelihood of the points under the histogram."""
        return float(self.score_samples(X).sum())
