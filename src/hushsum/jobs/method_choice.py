"""Which method counts records, and with which public sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
from hushsum.methods.fourier_features import fourier_features
from hushsum.methods.grid import grid
from hushsum.methods.race import race
from hushsum.tally.tally import Tally

METHODS = ("race", "grid", "fourier_features")
_OWN = {"race": ("rows", "width", "seed"), "grid": ("spacing",), "fourier_features": ("features", "seed")}
"""What each method can be told of its size."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """The public shape of a tally: tallies that shall merge need the same one.

    ``rows`` and ``width`` are for hash rows, ``spacing`` is for grids, ``features`` for Fourier features;
    None where a method's default will do.
    """

    method: str = "race"
    rows: int | None = None
    width: int | None = None
    seed: int = 0
    bounds: tuple[tuple[float, float], ...] | tuple[float, float] | None = None
    spacing: float | None = None
    features: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}; choose one")
        for name in ("rows", "width", "spacing", "features"):
            if getattr(self, name) is not None and name not in _OWN[self.method]:
                fitting = ", ".join(each for each in METHODS if name in _OWN[each])
                raise UsageError(
                    f"{name} is for the method {fitting}, got it for {self.method}; leave it out"
                )


def empty_tally(
    kernel: Kernel, size: TableSize, *, columns: Sequence[str] | None, max_per_unit: int | None
) -> Tally:
    """An empty tally of the method asked for."""
    own: dict[str, Any] = {name: getattr(size, name) for name in _OWN[size.method]}
    given = {name: value for name, value in own.items() if value is not None}
    if size.method == "race":
        return race(kernel, **given, bounds=size.bounds, columns=columns, max_per_unit=max_per_unit)
    if size.method == "fourier_features":
        return fourier_features(
            kernel, **given, bounds=size.bounds, columns=columns, max_per_unit=max_per_unit
        )
    if size.bounds is None:
        raise UsageError("a grid needs declared bounds, got none; give the range of each column")
    return grid(kernel, **given, bounds=size.bounds, columns=columns, max_per_unit=max_per_unit)
