"""A kernel and a method as a person names them, before the number of columns is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from hushsum.errors import UsageError
from hushsum.kernels.bandwidth_scale import OF_BOUNDS, UNITS, in_scale
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.kernels.parameters import one_of
from hushsum.kernels.registry import example_columns, is_expression, named, parameter_names
from hushsum.methods.registry import default_method, method_named, tally_methods
from hushsum.records.bounds import DeclaredBounds
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.tally.tally import Tally


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A kernel's name, or several in an expression, and the parameters given for it; None leaves a parameter
    at the kernel's default.

    ``scale`` says what the bandwidth is measured in (:func:`hushsum.kernels.bandwidth_scale.in_scale`), for
    which the declared ``bounds`` are needed.
    """

    name: str = "gaussian"
    bandwidth: float | None = None
    power: int | None = None
    bits: int | None = None
    projection: str | None = None
    smoothness: float | None = None
    radius: float | None = None
    scale: str | None = None
    bounds: DeclaredBounds | None = None

    def like(self, found: Kernel) -> KernelChoice:
        """With the bandwidth of a kernel that was found for it: of columns with units of their own as a
        fraction of the bounds.
        """
        if not isinstance(found, ColumnKernel):
            return self
        plain = found.unscaled()
        return replace(self, bandwidth=plain.bandwidth, scale=UNITS if plain is found else OF_BOUNDS)

    @property
    def takes_sets(self) -> bool:
        """Whether its records are sets, and not columns of numbers."""
        return "dim" not in parameter_names(self.name)

    def example(self, dim: int | None) -> Kernel:
        """The kernel where only the number of columns matters, or not even that is known."""
        columns = example_columns(self.name, dim)
        return self.build(dim if columns is None else len(columns), columns)

    def build(self, dim: int | None, columns: Sequence[str] | None = None) -> Kernel:
        """The kernel for records of ``dim`` columns, of these names.

        Raises
        ------
        UsageError
            if a parameter is missing that the kernel needs, or one is given that it does not have.
        """
        kernel = named(
            self.name,
            dim=dim,
            columns=columns,
            bandwidth=self.bandwidth,
            power=self.power,
            bits=self.bits,
            projection=self.projection,
            smoothness=self.smoothness,
            radius=self.radius,
        )
        return in_scale(kernel, self.scale, self.bounds, columns, default=not is_expression(self.name))


@dataclass(frozen=True, slots=True)
class TableSize:
    """The public shape of a tally: tallies that are to be merged need the same one.

    ``rows`` and ``width`` are for hash rows, ``spacing``, ``degree`` and ``steps`` for grids, ``features``,
    ``groups`` and ``structured`` for Fourier features; None where a method's default will do.
    ``seed`` is for those that have one. A ``method`` of None is that which suits the kernel
    (:func:`hushsum.methods.registry.default_method`).
    """

    method: str | None = None
    rows: int | None = None
    width: int | None = None
    seed: int = 0
    bounds: DeclaredBounds | None = None
    spacing: float | None = None
    features: int | None = None
    degree: int | None = None
    steps: tuple[float, ...] | None = None
    groups: int | None = None
    structured: bool | None = None

    def __post_init__(self) -> None:
        if self.method is None:
            return
        one_of("method", self.method, tally_methods())
        for name in self.given():
            if name not in method_named(self.method).settings:
                fitting = ", ".join(each for each in tally_methods() if name in method_named(each).settings)
                raise UsageError(
                    parameter=name,
                    rule=f"is for the method {fitting}",
                    got=f"it for {self.method}",
                    remedy="leave it out",
                )

    def given(self) -> dict[str, Any]:
        """The sizes that are declared, by name."""
        sizes = {name: getattr(self, name) for name in _sizes()}
        return {name: value for name, value in sizes.items() if value is not None}


def _sizes() -> tuple[str, ...]:
    """The sizes that some method of tallies takes."""
    every = {name for method in tally_methods() for name in method_named(method).settings}
    return tuple(each.name for each in fields(TableSize) if each.name in every - {"seed"})


def empty_tally(
    kernel: Kernel,
    size: TableSize,
    *,
    columns: Sequence[str] | None,
    max_per_unit: int | None,
    cells: CellFormat = PLAIN,
) -> Tally:
    """An empty tally of the requested method, for records that are read as ``cells`` says."""
    if size.method is None:
        bounded = size.bounds is not None
        size = replace(size, method=default_method(kernel, bounded=bounded, **size.given()))
    assert size.method is not None
    method = method_named(size.method)
    assert method.tally is not None
    if method.needs_bounds and size.bounds is None:
        raise UsageError(
            parameter="bounds",
            rule=f"must be declared for the method {size.method}",
            got="none",
            remedy="give the range of each column",
        )
    given = size.given()
    if "seed" in method.settings:
        given["seed"] = size.seed
    if size.steps is not None:
        given["steps"] = step_of_columns(size.steps)
    tally = method.tally(kernel, **given, bounds=size.bounds, columns=columns, max_per_unit=max_per_unit)
    return tally.restrict_to_add_remove() if cells.drop_missing else tally


def step_of_columns(steps: Sequence[float]) -> float | list[float | None]:
    """Numbers of a command or a request as :func:`hushsum.grid` takes them: 0 stands for no step."""
    return steps[0] if len(steps) == 1 else [each or None for each in steps]
