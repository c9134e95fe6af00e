"""Parameters requested by name: a kernel, a method, the table of a tally; before columns are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final

from hushsum.declaration import BOUNDS_TYPE, NUMBER, Parameter, request, setting
from hushsum.errors import UsageError
from hushsum.kernels import (
    SCALES,
    Kernel,
    example_columns,
    in_scale,
    is_expression,
    kernel_names,
    named,
    one_of,
    parameter_names,
)
from hushsum.methods import default_kernel, default_method, method_named, planned_methods, tally_methods
from hushsum.privacy import AUTO
from hushsum.records import PLAIN, CellFormat, DeclaredBounds, DeclaredSteps
from hushsum.tally import Tally

TABLE: Final = "Table"
"""A heading of help."""
of_kernel = partial(setting, group="Kernel")
of_table = partial(setting, group=TABLE)


@request
class KernelSpec:
    """A kernel's name, or several in an expression, and the parameters given for it; None leaves a parameter
    at the kernel's default.
    """

    kernel: str | None = setting(
        None,
        "gaussian, laplacian, matern, euclidean, manhattan, angular, jaccard or hamming; or "
        "several, with their columns: 'euclidean(age, bandwidth=10) * hamming(town)'. [default: "
        "gaussian; where hash rows are requested, euclidean; for sets, jaccard]",
        suggestions=kernel_names,
    )
    bandwidth: float | None = setting(
        None, "How near records must be to count as similar; chosen without looking at them.", above=0
    )
    scale: str | None = of_kernel(
        None,
        "What the bandwidth is measured in: the units of the data, or the declared range of each "
        "column, of which it is then a fraction. [default: bounds if the ranges differ by more than 10 "
        "times]",
        choices=SCALES,
        metavar="units|bounds",
    )
    power: int | None = of_kernel(
        None, "Power of the similarity; a larger power decreases faster.", at_least=1, at_most=256
    )
    bits: int | None = of_kernel(None, "Sign bits of the angular kernel.", at_least=1, at_most=64)
    projection: str | None = of_kernel(
        None, "dense, or structured: faster from about 512 columns on.", choices=("dense", "structured")
    )
    smoothness: float | None = of_kernel(
        None, "Smoothness of the matern kernel: 0.5, 1.5 or 2.5. [default: 1.5]", at_least=0.5, at_most=2.5
    )
    radius: float | None = of_kernel(
        None,
        "For the dot-product and polynomial kernels: longer records are shortened to this length. "
        "[default: 1]",
        at_least=1e-15,
        at_most=1e15,
    )

    @property
    def name(self) -> str:
        """The name of the kernel, or an expression of several."""
        return self.kernel or default_kernel()

    def for_records(self, *, method: str | None = None, sets: bool = False, **sizes: Any) -> KernelSpec:
        """The same with the kernel named, which depends on the method and on what records are by default."""
        return replace(self, kernel=self.kernel or default_kernel(method, sets=sets, **sizes))

    def for_comparison(self, dim: int | None) -> KernelSpec:
        """The same with a bandwidth where none is given, as for normal records whose standard deviation is an
        eighth of the declared range of each column.
        """
        parameters = () if is_expression(self.name) else parameter_names(self.name)
        if self.bandwidth is not None or dim is None or "bandwidth" not in parameters:
            return self
        return replace(self, bandwidth=float(f"{math.sqrt(dim / 2.0) / 8.0:.2g}"), scale="bounds")

    @property
    def takes_sets(self) -> bool:
        """Whether its records are sets, and not columns of numbers."""
        return "dim" not in parameter_names(self.name)

    def example(
        self, dim: int | None, bounds: DeclaredBounds | None = None, columns: Sequence[str] | None = None
    ) -> Kernel:
        """The kernel where only the number of columns matters, or not even that is known."""
        known = columns or example_columns(self.name, dim)
        return self.build(len(known) if dim is None and known is not None else dim, known, bounds)

    def build(
        self, dim: int | None, columns: Sequence[str] | None = None, bounds: DeclaredBounds | None = None
    ) -> Kernel:
        """The kernel for records of ``dim`` columns, of these names, in these bounds.

        Raises
        ------
        UsageError
            if a parameter is missing that the kernel needs, or one is given that it does not have.
        """
        kernel = self.plain(dim, columns, bandwidth=self.bandwidth)
        return in_scale(kernel, self.scale, bounds, columns, default=not is_expression(self.name))

    def plain(self, dim: int | None, columns: Sequence[str] | None, *, bandwidth: float | None) -> Kernel:
        """The kernel with another bandwidth, in the units of the data."""
        names = ("power", "bits", "projection", "smoothness", "radius")
        given = {name: getattr(self, name) for name in names}
        return named(self.name, dim=dim, columns=columns, bandwidth=bandwidth, **given)


BOUNDS: Final = Parameter(
    type=BOUNDS_TYPE,
    help="Declared range of all columns, or of each; records are clipped to it.",
    metavar="LOW:HIGH[,...]",
)
METHOD: Final = Parameter(
    help="auto compares all methods that can release the kernel; or the name of one method.",
    choices=lambda: (AUTO, *planned_methods()),
    metavar="NAME",
)
QUERIES: Final = "query"
COMPARISON: Final = "compare"
PURPOSE: Final = Parameter(
    help="compare: a table for two-sample tests, alike for all owners.", choices=(QUERIES, COMPARISON)
)
SEED: Final = Parameter(
    group=TABLE, help="Public seed of the random functions.", at_least=0, at_most=(1 << 63) - 1
)
STEPS: Final = Parameter(
    group=TABLE,
    type=NUMBER,
    several=True,
    help="For columns whose values are multiples of a step, such as 0.5: grid nodes lie on these values. One "
    "step for all columns, or one for each; 0 for a column without a step.",
    at_least=0,
    metavar="STEP[,...]",
)
WIDTH: Final = Parameter(
    group=TABLE, help="Cells per row of a race table. [default: 1000]", at_least=2, at_most=10**8
)


@request
class MethodSpec:
    """How records are released: what a person declares for the plan; all of it is public.

    ``records`` is the declared number of records. ``width`` is for hash rows, ``steps`` for grids.
    """

    method: str = setting(AUTO, METHOD)
    purpose: str = setting(QUERIES, PURPOSE)
    records: int | None = setting(
        None, "Declared number of records, for the plan; the true one is private.", at_least=1, at_most=10**12
    )
    width: int | None = setting(None, WIDTH)
    steps: DeclaredSteps | None = setting(None, STEPS)
    seed: int = setting(0, SEED)


@request
class TableSpec:
    """The public shape of a tally: tallies that are to be merged need the same one.

    ``rows`` and ``width`` are for hash rows, ``spacing``, ``degree`` and ``steps`` for grids, ``features``,
    ``groups``, ``structured`` and ``axes`` for Fourier features; None where a method's default will do.
    ``seed`` is for those that have one. A ``method`` of None is that which suits the kernel
    (:func:`hushsum.methods._method.default_method`).
    """

    method: str | None = setting(
        None,
        "race: kernels with hash functions; grid: 1 to 4 columns with bounds; fourier_features: gaussian, "
        "laplacian, matern; or another method that counts in a tally. [default: the first of these methods "
        "that takes the kernel]",
        choices=tally_methods,
        metavar="NAME",
    )
    rows: int | None = of_table(
        None, "Rows of a race table; a release may publish fewer. [default: 1000]", at_least=1, at_most=10**8
    )
    width: int | None = setting(None, WIDTH)
    spacing: float | None = of_table(
        None, "Distance between grid nodes, in bandwidths. [default: 0.75]", above=0
    )
    degree: int | None = of_table(
        None, "Degree of the weights on a grid, 2 to 5. [default: by columns]", at_least=2, at_most=5
    )
    steps: DeclaredSteps | None = setting(None, STEPS)
    features: int | None = of_table(
        None, "Number of frequencies of fourier_features. [default: 4096]", at_least=1, at_most=10**8
    )
    groups: int | None = of_table(
        None,
        "Groups of fourier_features; each record is counted in one group: less time, more noise. [default: "
        "1]",
        at_least=1,
        at_most=1 << 10,
    )
    structured: bool | None = of_table(
        None, "Frequencies of fourier_features by fast transforms, for many columns."
    )
    axes: int | None = of_table(
        None,
        "Rows of fourier_features for each single column, from which a release is sharpened. [default: none]",
        at_least=1,
        at_most=64,
    )
    seed: int = setting(0, SEED)

    def __post_init__(self) -> None:
        if self.method is None:
            return
        one_of("method", self.method, tally_methods())
        for name in self.given():
            if name not in method_named(self.method).settings:
                fitting = ", ".join(each for each in tally_methods() if name in method_named(each).settings)
                raise UsageError(name, f"is for the method {fitting}", got=f"it for {self.method}")

    def given(self) -> dict[str, Any]:
        """The sizes that are declared, by name."""
        sizes = {name: getattr(self, name) for name in _sizes()}
        return {name: value for name, value in sizes.items() if value is not None}


def _sizes() -> tuple[str, ...]:
    """The sizes that some method of tallies takes."""
    every = {name for method in tally_methods() for name in method_named(method).settings}
    return tuple(each.name for each in fields(TableSpec) if each.name in every - {"seed"})


def empty_tally(
    kernel: Kernel,
    size: TableSpec,
    *,
    bounds: DeclaredBounds | None,
    columns: Sequence[str] | None,
    max_per_unit: int | None,
    cells: CellFormat = PLAIN,
) -> Tally:
    """An empty tally of the requested method, for records that are read as ``cells`` says."""
    if size.method is None:
        bounded = bounds is not None
        size = replace(size, method=default_method(kernel, bounded=bounded, **size.given()))
    assert size.method is not None
    method = method_named(size.method)
    assert method.tally is not None
    if method.needs_bounds and bounds is None:
        rule = f"must be declared for the method {size.method}"
        raise UsageError("bounds", rule, got="none", remedy="give the range of each column")
    given = size.given()
    if "seed" in method.settings:
        given["seed"] = size.seed
    if isinstance(size.steps, tuple):
        given["steps"] = step_of_columns(size.steps)
    tally = method.tally(kernel, **given, bounds=bounds, columns=columns, max_per_unit=max_per_unit)
    return tally.restrict_to_add_remove() if cells.drop_missing else tally


def takes_sets(kernel: KernelSpec | Kernel) -> bool:
    """Whether the records of a kernel are sets, and not columns of numbers."""
    return kernel.dim is None if isinstance(kernel, Kernel) else kernel.takes_sets


def built(
    kernel: KernelSpec | Kernel, dim: int | None, columns: Sequence[str] | None, bounds: DeclaredBounds | None
) -> Kernel:
    """The kernel for records of these columns; a kernel object is one already."""
    return kernel if isinstance(kernel, Kernel) else kernel.build(dim, columns, bounds)


def step_of_columns(steps: Sequence[float]) -> float | list[float | None]:
    """Numbers of a command or a request as :func:`hushsum.grid` takes them: 0 stands for no step."""
    return steps[0] if len(steps) == 1 else [each or None for each in steps]
