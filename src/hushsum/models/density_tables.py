"""Which tables answer the kernels of a density estimate, and how answers become densities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box
from hushsum.errors import UsageError, shown
from hushsum.kernels.bandwidth_scale import in_scale
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.kernels.registry import (
    HASH_ROWS,
    HASHABLE,
    SMOOTH_PROFILES,
    SPECTRAL,
    Role,
    kernel_as_json,
    kernel_from_json,
    kernel_names,
    named,
    parameter_names,
)
from hushsum.methods.fourier_features import NAME as FOURIER_FEATURES
from hushsum.methods.grid import NAME as GRID
from hushsum.methods.race import NAME as RACE
from hushsum.methods.registry import method_named, planned_methods
from hushsum.models.mode_search import spread_points
from hushsum.models.predicted_error import share_of
from hushsum.privacy.claim import Claim
from hushsum.releases.base import ReleasedFunction
from hushsum.tally.tally import Tally

FUNCTIONAL = "functional"
KERNELS = tuple(
    name
    for name in kernel_names()
    if "dim" in parameter_names(name) and name in {*HASHABLE.kernels(), *SPECTRAL.kernels()}
)
"""The kernels of columns that hash rows or random features count, by name."""
METHODS = (
    "auto",
    *(
        name
        for name in planned_methods()
        if method_named(name).tally is not None and set(method_named(name).role.kernels()) & set(KERNELS)
    ),
    FUNCTIONAL,
)
MOST_GRID_COLUMNS = 4
TABLES: tuple[tuple[Role, int | None, str], ...] = (
    (HASH_ROWS, None, RACE),
    (SMOOTH_PROFILES, MOST_GRID_COLUMNS, GRID),
    (SPECTRAL, None, FOURIER_FEATURES),
)
"""Where a model counts a kernel: the first method whose role it has, in no more than so many columns."""


@dataclass(frozen=True, slots=True)
class KernelTable:
    """One kernel with its bandwidth, and the part of the bundle that answers it."""

    kernel: Kernel
    method: str
    part: str

    @property
    def shared(self) -> bool:
        """Whether the part answers other kernels too, so that it needs the name of this one."""
        return self.method != FUNCTIONAL and method_named(self.method).shared

    def as_json(self) -> dict[str, Any]:
        """For the bundle's header."""
        return {"kernel": kernel_as_json(self.kernel), "method": self.method, "part": self.part}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> KernelTable:
        """The inverse of :meth:`as_json`."""
        return cls(kernel_from_json(data["kernel"]), data["method"], data["part"])


def planned(
    names: object, bandwidths: object, method: str, dim: int, *, scale: str | None, box: Box
) -> list[KernelTable]:
    """Every kernel with every bandwidth, in the order given.

    Gaussian kernels in few columns are read off one grid, whatever their number; every other one needs a
    table of its own.

    Raises
    ------
    UsageError
        if a kernel, a bandwidth or the method is unknown, or cannot serve together.
    """
    kernels = [
        each
        for name in _listed("kernel", names)
        for each in _kernels(name, _listed("bandwidth", bandwidths), dim, scale, box)
    ]
    planned = []
    for number, kernel in enumerate(kernels):
        counting = table_method(kernel, dim) if method == "auto" else method
        table = KernelTable(kernel, counting, part=f"{counting} {number}")
        planned.append(replace(table, part=counting) if table.shared else table)
    return planned


def tallies(
    planned: Sequence[KernelTable], *, seed: int, box: Box, columns: Sequence[str] | None = None
) -> dict[str, Tally]:
    """An empty tally for each part."""
    parts: dict[str, list[KernelTable]] = {}
    for each in planned:
        parts.setdefault(each.part, []).append(each)
    # Of kernels that share a table the finest decides its size; the coarser ones are read off it too.
    return {
        part: empty_table(
            min((each.kernel for each in sharing), key=_width),
            sharing[0].method,
            box=box,
            columns=columns,
            seed=seed,
        )
        for part, sharing in parts.items()
    }


class TableSums:
    """The tallies of a density estimate, by part; secret.

    Privacy
    -------
    The parts count the same records, so they share the promise as `share_of` says.
    """

    __slots__ = ("tallies",)

    def __init__(self, tallies: dict[str, Tally]) -> None:
        self.tallies = tallies

    def add(self, records: object) -> None:
        """Count records in every part."""
        for tally in self.tallies.values():
            tally.add(records)

    def release(self, claim: Claim) -> dict[str, ReleasedFunction]:
        """Every part, each for its share of the claim."""
        share = share_of(claim.promise, len(self.tallies))
        return {name: tally.release(**share) for name, tally in self.tallies.items()}

    def __repr__(self) -> str:
        return "<TableSums CONFIDENTIAL>"


def empty_table(
    kernel: Kernel, method: str, *, box: Box | None, columns: Sequence[str] | None = None, **sizes: int
) -> Tally:
    """An empty tally of a method, with those of the sizes that it takes."""
    counting = method_named(method)
    assert counting.tally is not None
    taken = {name: value for name, value in sizes.items() if name in counting.settings}
    bounds = box if isinstance(kernel, ColumnKernel) else None
    return counting.tally(kernel, bounds=bounds, columns=columns, **taken)


def table_method(kernel: Kernel, dim: int) -> str:
    """Hash rows for hash kernels, a grid for Gaussian ones in few columns, random features otherwise."""
    found = (name for role, most, name in TABLES if role.test(kernel) and (most is None or dim <= most))
    return next(found, FOURIER_FEATURES)


def _kernels(name: object, bandwidths: list[Any], dim: int, scale: str | None, box: Box) -> list[Kernel]:
    if not isinstance(name, str):
        raise UsageError(
            parameter="kernel",
            rule="must be a name or a list of names",
            got=shown(name),
            remedy="try 'gaussian'",
        )
    takes = parameter_names(name)
    if "dim" not in takes:
        raise UsageError(
            parameter="kernel",
            rule="must be one of columns of numbers",
            got=f"{name!r}",
            remedy="try 'gaussian'",
        )
    if "bandwidth" not in takes:
        return [named(name, dim=dim)]
    return [in_scale(named(name, dim=dim, bandwidth=each), scale, box) for each in bandwidths]


def _listed(name: str, value: object) -> list[Any]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return [value]
    values = list(value)
    if not values or len(set(values)) != len(values):
        raise UsageError(
            parameter=name, rule="must name different values, at least one", remedy="give each once"
        )
    return values


def _width(kernel: Kernel) -> float:
    return kernel.width if isinstance(kernel, ColumnKernel) else 1.0


Floats = NDArray[np.float64]

POINTS = 4096


def normalising_constant(kernel: Kernel) -> float | None:
    """The integral of the kernel over all space; None where it has none, as hash kernels do.

    >>> from hushsum.kernels.gaussian import GaussianKernel
    >>> round(normalising_constant(GaussianKernel(dim=1, bandwidth=1.0)), 4)
    2.5066
    """
    integral = kernel.integral() if isinstance(kernel, ColumnKernel) else math.inf
    return integral if math.isfinite(integral) else None


def integral_over_box(function: ReleasedFunction, box: Box) -> float:
    """The integral of the mean kernel value over the box, negative answers taken as 0.

    By the mean over a fixed, public set of Sobol points: post-processing of what was released.
    """
    volume = math.prod(high - low for low, high in box)
    low, high = np.array(box).T
    values = np.maximum(function(spread_points(low, high, POINTS, seed=0)), 0.0)
    return max(volume * float(values.mean()), float(np.finfo(np.float64).tiny))
