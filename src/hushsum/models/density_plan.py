"""Which released table answers which kernel of a density estimate, and what each of them costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hushsum.errors import UsageError, shown
from hushsum.kernels.base import (
    ColumnKernel,
    GaussianProfileKernel,
    HashableKernel,
    Kernel,
    kernel_as_json,
    kernel_from_json,
    named,
    parameter_names,
)
from hushsum.methods.fourier_features import fourier_features
from hushsum.methods.grid import grid
from hushsum.methods.race import race
from hushsum.tally.tally import Tally

METHODS = ("auto", "grid", "fourier_features", "functional", "race")
FUNCTIONAL = "functional"
MOST_GRID_COLUMNS = 4
GRID = "grid"
Box = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One kernel with its bandwidth, and the part of the bundle that answers it."""

    kernel: Kernel
    method: str
    part: str

    def as_json(self) -> dict[str, Any]:
        """For the bundle's header."""
        return {"kernel": kernel_as_json(self.kernel), "method": self.method, "part": self.part}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Wanted:
        """The inverse of :meth:`as_json`."""
        return cls(kernel_from_json(data["kernel"]), data["method"], data["part"])


def planned(names: object, bandwidths: object, method: str, dim: int) -> list[Wanted]:
    """Every kernel with every bandwidth, in the order given.

    Gaussian kernels in few columns are read off one grid, whatever their number; every other one needs a
    table of its own.

    Raises
    ------
    UsageError
        if a kernel, a bandwidth or the method is unknown, or cannot serve together.
    """
    if method not in METHODS:
        raise UsageError(f"method must be one of {', '.join(METHODS)}, got {shown(method)}; choose one")
    kernels = [
        each
        for name in _listed("kernel", names)
        for each in _kernels(name, _listed("bandwidth", bandwidths), dim)
    ]
    wanted = []
    for number, kernel in enumerate(kernels):
        way = _method(kernel, dim) if method == "auto" else method
        wanted.append(Wanted(kernel, way, GRID if way == GRID else f"{way} {number}"))
    return wanted


def tallies(wanted: Sequence[Wanted], *, seed: int, box: Box) -> dict[str, Tally]:
    """An empty tally for each part."""
    made: dict[str, Tally] = {}
    on_the_grid = [each.kernel for each in wanted if each.part == GRID]
    for each in wanted:
        if each.part in made:
            continue
        if each.method == GRID:
            # The finest kernel decides the spacing; the coarser ones are read off the same nodes.
            made[GRID] = grid(min(on_the_grid, key=_width), bounds=box)
        elif each.method == "race":
            made[each.part] = race(
                each.kernel, seed=seed, bounds=box if isinstance(each.kernel, ColumnKernel) else None
            )
        else:
            made[each.part] = fourier_features(each.kernel, seed=seed, bounds=box)
    return made


def _method(kernel: Kernel, dim: int) -> str:
    if isinstance(kernel, HashableKernel):
        return "race"
    on_grid = isinstance(kernel, GaussianProfileKernel) and dim <= MOST_GRID_COLUMNS
    return GRID if on_grid else "fourier_features"


def _kernels(name: object, bandwidths: list[Any], dim: int) -> list[Kernel]:
    if not isinstance(name, str):
        raise UsageError(f"kernel must be a name or a list of names, got {shown(name)}; try 'gaussian'")
    takes = parameter_names(name)
    if "dim" not in takes:
        raise UsageError(f"kernel must be one of columns of numbers, got {name!r}; try 'gaussian'")
    if "bandwidth" not in takes:
        return [named(name, dim=dim)]
    return [named(name, dim=dim, bandwidth=each) for each in bandwidths]


def _listed(name: str, value: object) -> list[Any]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return [value]
    values = list(value)
    if not values or len(set(values)) != len(values):
        raise UsageError(f"{name} must name different values, at least one; give each once")
    return values


def _width(kernel: Kernel) -> float:
    return kernel.width if isinstance(kernel, ColumnKernel) else 1.0
