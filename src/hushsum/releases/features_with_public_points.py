"""Released Fourier features, read with the help of public points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, PathOrFile
from hushsum.bases.fit_public_points import Explained, explain
from hushsum.bases.fourier_features import FeatureReading, FourierFeatures
from hushsum.errors import UsageError
from hushsum.files.container import Header
from hushsum.kernels.base import Batch
from hushsum.releases.answers import Answers, query_points
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.releases.forwarded_properties import ForwardedFacts
from hushsum.releases.load import register
from hushsum.releases.presentation import Detail
from hushsum.releases.release_with_points_file import payload_size, read_with_points, save_with_points

TYPE = "sharpened"
MOST_POINTS = 10_000


@dataclass(frozen=True, eq=False)
class SharpenedFunction(ForwardedFacts):
    """Fourier features with public points that explain most of them: ``f.with_public_points(points)``.

    Answers are unbiased whatever the points, with smaller errors the better these resemble the records:
    chance acts only on what they leave unexplained. Where they explain nothing, answers are those of
    ``function``. The first answer takes the time of a fit: a tenth of a second for 500 points, five for
    2000.

    Privacy
    -------
    The points must be public, and then everything here is computed from what was released: nothing is spent.
    Points taken from the private records would be a leak.
    """

    function: CoefficientFunction
    points: NDArray[np.float64]

    def __post_init__(self) -> None:
        if not isinstance(self.function.reading, FeatureReading):
            raise UsageError(
                parameter="points",
                rule="sharpen Fourier features alone",
                got=f"a release of {self.function.basis.name}",
                remedy="read it without them",
            )
        if not 1 <= len(self.points) <= MOST_POINTS:
            raise UsageError(
                parameter="points",
                rule=f"must be 1 to {MOST_POINTS}",
                got=len(self.points),
                remedy="a few hundred to 2000 will do",
            )
        self.points.flags.writeable = False

    def __repr__(self) -> str:
        return f"SharpenedFunction({self.function!r}, points={len(self.points)}, {self.claim!r})"

    def details(self) -> tuple[Detail, ...]:
        """The release, and the number of public points it is read with."""
        number = len(self.points)
        return (*self.function.details(), Detail("points", number, f"read with {number} public points"))

    @property
    def explained(self) -> float:
        """Which share of the released table's squares, noise included, the points explain in rows that they
        were not fitted to; 0 where they do not help.
        """
        return self._explained.share

    def __call__(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,)."""
        return self.sum(Q, nonnegative=nonnegative, threads=threads) / max(self.count, 1.0)

    def sum(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        points = query_points(Q, dim=self.dim, columns=self.columns)
        sums = self._remainder.sum(points, threads=threads) + self._of_points(points)
        return np.maximum(sums, 0.0) if nonnegative else sums

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals, from the spread over features of what is unexplained."""
        points = query_points(Q, dim=self.dim, columns=self.columns)
        return self._remainder.query_plus(
            points,
            self._of_points(points),
            of=of,
            level=level,
            simultaneous=simultaneous,
            threads=threads,
        )

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file that holds the release and the points; to a path atomically."""
        save_with_points(target, TYPE, self.function, self.points)

    def __reduce__(self) -> tuple[Callable[..., SharpenedFunction], tuple[CoefficientFunction, Floats]]:
        return SharpenedFunction, (self.function, np.array(self.points))

    @cached_property
    def _explained(self) -> Explained:
        return explain(self._basis, self.function.table, self._batch)

    @cached_property
    def _remainder(self) -> CoefficientFunction:
        return replace(self.function, cells=self._explained.remainder)

    @property
    def _basis(self) -> FourierFeatures:
        return self._reading.basis

    @property
    def _reading(self) -> FeatureReading:
        assert isinstance(self.function.reading, FeatureReading)
        return self.function.reading

    @cached_property
    def _batch(self) -> Batch:
        return self._basis.prepare_queries(self.points)

    def _of_points(self, Q: object) -> Floats:
        """The exact kernel sums of the weighted points."""
        batch = self._basis.prepare_queries(Q)
        return self._reading.weighted_sums(self._batch, self._explained.weights, batch)


def sharpen(function: CoefficientFunction, points: object) -> SharpenedFunction:
    """Read a release of Fourier features with the help of public points, given as queries are."""
    basis = function.basis
    rows = basis.prepare_queries(points).arrays[0].astype(np.float64)
    bounds = basis.bounds
    if bounds is not None:
        # Prepared rows are relative to the centre of the box; points are kept as they were given.
        rows += np.array(bounds.low) / 2 + np.array(bounds.high) / 2
    return SharpenedFunction(function, rows)


def _build(header: Header, payload: memoryview) -> ReleasedFunction:
    function, points = read_with_points(header, payload)
    if not isinstance(function, CoefficientFunction):
        raise ValueError("points")
    if function.basis.prepare_queries(points).arrays[0].shape != points.shape:
        raise ValueError("points")
    return SharpenedFunction(function, points)


register(TYPE, payload_size, _build)
