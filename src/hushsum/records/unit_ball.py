"""Records with a target, brought into the unit ball by declared bounds alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

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
