"""Records brought into a ball: of radius 1 by declared bounds, or of a declared radius by clipping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.records.bounds import Bounds
from hushsum.records.native_batch import as_dense


@dataclass(frozen=True, slots=True)
class UnitBall:
    """The public map of a record (x, y) to features φ with ‖φ‖ ≤ 1 and a target v with |v| ≤ 1.

    Every column is clipped to its bounds and mapped to [−1, 1]; then φ = (1, u)/radius and v is the target's
    place between its bounds. A smaller ``radius`` makes the features larger against noise, and shortens
    records with ‖u‖ beyond √(radius² − 1) to that length. The default radius shortens nothing.

    Parameters
    ----------
    bounds : Bounds
        One pair for each feature, and the target's as the last.
    radius : float, optional
        Above 1. Default: √(features + 1).

    Privacy
    -------
    Everything is elementwise, or sums one record's columns in a fixed order, so the bits of a mapped record
    depend on that record alone.

    Examples
    --------
    >>> ball = UnitBall(Bounds.of([(0, 10), (0, 10), (-1, 1)], 3))
    >>> features, target = ball.of_records([[5.0, 10.0, 0.5]])
    >>> features.round(3), target
    (array([[0.577, 0.   , 0.577]]), array([0.5]))
    """

    bounds: Bounds
    radius: float | None = None

    def __post_init__(self) -> None:
        if self.radius is not None and not (math.isfinite(self.radius) and self.radius > 1.0):
            raise UsageError(
                parameter="radius",
                rule="must be finite and above 1",
                got=f"{self.radius}",
                remedy="leave it out",
            )

    @property
    def columns(self) -> int:
        """Columns of a record, the target included."""
        return self.bounds.dim

    @property
    def features(self) -> int:
        """Numbers in φ: one more than columns of x."""
        return self.bounds.dim

    @property
    def length(self) -> float:
        """The radius that divides."""
        return math.sqrt(self.features) if self.radius is None else min(self.radius, math.sqrt(self.features))

    def of_records(self, data: object, *, columns: tuple[str, ...] | None = None) -> tuple[Floats, Floats]:
        """φ of shape (n, features) and v of shape (n,), of records with the target in the last column.

        Raises ``DataRefused`` for anything but a table of finite numbers of that width.
        """
        rows = as_dense(data, dim=self.columns, bounds=self.bounds, columns=columns)
        half = self.bounds.half_width.astype(np.float64)
        unit = rows.astype(np.float64) / half
        inner, target = unit[:, :-1], np.ascontiguousarray(unit[:, -1])
        return self._ball(inner), target

    def _ball(self, unit: Floats) -> Floats:
        radius = self.length
        features = np.empty((len(unit), unit.shape[1] + 1))
        features[:, 0] = 1.0 / radius
        shrink = np.minimum(1.0, math.sqrt(radius**2 - 1.0) / np.maximum(norms(unit), 1e-300))
        features[:, 1:] = unit * (shrink / radius)[:, None]
        return features

    def model(self, theta: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept in the units of the records, of v ≈ θ·φ."""
        half = self.bounds.half_width.astype(np.float64)
        scaled = np.asarray(theta, np.float64) * half[-1] / self.length
        slopes = scaled[1:] / half[:-1]
        centre = self.bounds.centre
        return slopes, float(scaled[0] + centre[-1] - slopes @ centre[:-1])

    def theta(self, slopes: Floats, intercept: float) -> Floats:
        """The inverse of `model`."""
        half = self.bounds.half_width.astype(np.float64)
        centre = self.bounds.centre
        level = intercept - centre[-1] + slopes @ centre[:-1]
        scaled: Floats = np.concatenate(([level], slopes * half[:-1])) * self.length / half[-1]
        return scaled

    def as_json(self) -> dict[str, Any]:
        """The map as JSON values."""
        return {"bounds": self.bounds.as_json(), "radius": self.radius}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> UnitBall:
        """The inverse of `as_json`."""
        return cls(Bounds.from_json(data["bounds"]), data["radius"])


def norms(rows: Floats) -> Floats:
    """The length of every row, its squares summed column by column: a record's bits depend on no other."""
    total = np.zeros(len(rows))
    for column in range(rows.shape[1]):
        total += rows[:, column] * rows[:, column]
    return np.sqrt(total)


MOST_BITS = 20
FEWEST_BITS = 8


def whole_length(dim: int, bits: int) -> int:
    """A: the whole number that stands for the radius, so that rounded vectors are no longer than 2^bits.

    >>> whole_length(512, 12)
    4083
    """
    return (1 << bits) - math.isqrt(dim) // 2 - 2


def clipped_to_ball(rows: Floats, radius: float) -> Floats:
    """Rows that are longer than the radius, shortened to it; each row's bits depend on that row alone."""
    # At least the radius, so that the quotient neither overflows nor warns, which would tell of a record.
    shrink = radius / np.maximum(norms(rows), radius)
    clipped: Floats = rows * shrink[:, None]
    return clipped


def whole_vectors(rows: Floats, radius: float, bits: int) -> NDArray[np.int64]:
    """Rows in the ball of this radius, rounded to whole numbers z with ‖z‖ ≤ S = 2^bits.

    Privacy
    -------
    A row is clipped to the radius, multiplied by A/radius and rounded, each column by itself; the squares
    behind its length are summed column by column. So its bits depend on that row alone. Rounding moves each
    of d columns by at most ½, and clipping and scaling in double precision make the length wrong by less
    than d·2⁻⁴⁹ of itself. So ‖z‖ ≤ A·(1 + d·2⁻⁴⁹) + √d/2 ≤ S, with A = S − ⌊⌊√d⌋/2⌋ − 2, for every d up to
    2²⁰.
    """
    length = whole_length(rows.shape[1], bits)
    scaled = clipped_to_ball(rows, radius) * (length / radius)
    return np.rint(scaled).astype(np.int64)
