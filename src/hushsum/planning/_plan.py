"""Plans: the predicted error of each method of release, from declared quantities; no private data is read.

What is planned is requested by name, before columns are known: a kernel, a method, the table of a tally. Who
is trusted (`TrustModel`), what a public sample decides, the smallest ε that reaches an error, and the result
as a table, JSON and text stand here too, and whether a bandwidth is too small for the declared number of
records.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from math import ceil, floor, log10
from typing import Any, Final

import numpy as np

from hushsum import _html, kernels, privacy
from hushsum._types import Floats
from hushsum.declaration import BOUNDS_TYPE, NUMBER, Parameter, request, required, setting, taking_fields_of
from hushsum.errors import DataRefused, Part, SuspiciousParameter, UsageError
from hushsum.errors import Parameter as NameOf
from hushsum.kernels import ColumnKernel, HashableKernel, Kernel, scaled_by
from hushsum.methods import (
    BOUND,
    HEADER_BYTES,
    MEAN,
    NORMAL_MEAN_ABSOLUTE,
    SUM,
    Method,
    Option,
    PredictionRequest,
    comparison_option,
    default_kernel,
    default_method,
    likely_densities,
    method_named,
    option_of_reading,
    planned_methods,
    row_variances,
    row_width,
    tally_methods,
    typical_density,
)
from hushsum.privacy import AUTO, Promise, Relation
from hushsum.privacy.accounting import local_epsilon_for
from hushsum.records import (
    PLAIN,
    Bounds,
    CellFormat,
    DeclaredBounds,
    DeclaredSteps,
    as_dense,
    column_names_of,
    declared_bounds,
    declared_steps,
)
from hushsum.releases import FEWEST_POINTS
from hushsum.tables import HashRows, Reading
from hushsum.tally import Tally

__all__ = [
    "BOUNDS", "CENTRAL", "KernelSpec", "MethodSpec", "Option", "Plan", "PlanRequest", "TableSpec",
    "bounds_of_sample", "built", "bytes_in_words", "empty_tally", "kernel_of_sample", "plan",
    "rounded_bandwidth", "silverman", "takes_sets",
]  # fmt: skip

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
        suggestions=kernels.kernel_names,
    )
    bandwidth: float | None = setting(
        None, "How near records must be to count as similar; chosen without looking at them.", above=0
    )
    scale: str | None = of_kernel(
        None,
        "What the bandwidth is measured in: the units of the data, or the declared range of each "
        "column, of which it is then a fraction. [default: bounds if the ranges differ by more than 10 "
        "times]",
        choices=kernels.SCALES,
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
        parameters = () if kernels.is_expression(self.name) else kernels.parameter_names(self.name)
        if self.bandwidth is not None or dim is None or "bandwidth" not in parameters:
            return self
        return replace(self, bandwidth=float(f"{math.sqrt(dim / 2.0) / 8.0:.2g}"), scale="bounds")

    @property
    def takes_sets(self) -> bool:
        """Whether its records are sets, and not columns of numbers."""
        return "dim" not in kernels.parameter_names(self.name)

    def example(
        self, dim: int | None, bounds: DeclaredBounds | None = None, columns: Sequence[str] | None = None
    ) -> Kernel:
        """The kernel where only the number of columns matters, or not even that is known."""
        known = columns or kernels.example_columns(self.name, dim)
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
        return kernels.in_scale(
            kernel, self.scale, bounds, columns, default=not kernels.is_expression(self.name)
        )

    def plain(self, dim: int | None, columns: Sequence[str] | None, *, bandwidth: float | None) -> Kernel:
        """The kernel with another bandwidth, in the units of the data."""
        names = ("power", "bits", "projection", "smoothness", "radius")
        given = {name: getattr(self, name) for name in names}
        return kernels.named(self.name, dim=dim, columns=columns, bandwidth=bandwidth, **given)


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
        kernels.one_of("method", self.method, tally_methods())
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


def bytes_in_words(size: int, *, digits: int = 3) -> str:
    """A number of bytes with three digits, or fewer.

    >>> bytes_in_words(2_345_678), bytes_in_words(668_400, digits=2)
    ('2.35 MB', '670 kB')
    """
    number = float(f"{float(size):.{digits}g}")
    for unit in ("B", "kB", "MB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"


def in_seconds(seconds: float) -> str:
    """A duration with its unit.

    >>> in_seconds(0.012)
    '12 ms'
    """
    return f"{seconds * 1000:.2g} ms" if seconds < 1 else f"{seconds:.3g} s"


MOST_SHOWN = 5
"""Options of what was requested that a table shows."""

_HEAD = ("method", "mechanism", "promise", "table", "noise", "approx.", "error")
_FEW, _MANY, _OF_KNOWN = "sparse", "dense", "relative"
_HEAD_OF_FILE = ("file", "build")


@dataclass(frozen=True, slots=True)
class Plan:
    """Options in the order of their predicted error within each promise. Printing it shows the best five.

    ``density`` is the mean kernel value that is typical of queries, and ``densities`` are a low, a middle and
    a high one that errors are predicted for; all are the typical one where that is known. ``basis`` states
    what the approximation of hash rows is based on: ``"bound"`` or ``"public data"``. ``of`` is what answers
    are, ``"mean"`` or ``"sum"``.
    """

    options: tuple[Option, ...]
    records: int
    density: float
    densities: tuple[float, float, float]
    basis: str
    kernel: Kernel
    of: str = MEAN

    @property
    def best(self) -> Option:
        """The option with the smallest predicted error that makes a promise that was requested."""
        return min((option for option in self.options if option.requested), key=lambda option: option.error)

    def option(
        self,
        *,
        method: str | None = None,
        rows: int | None = None,
        epsilon: float | None = None,
        mechanism: str | None = None,
    ) -> Option:
        """The best option with the given properties."""
        properties = {"method": method, "rows": rows, "epsilon": epsilon, "mechanism": mechanism}
        found = [
            option
            for option in self.options
            if all(value is None or getattr(option, name) == value for name, value in properties.items())
        ]
        if not found:
            raise UsageError(f"the plan has no option with {properties}", remedy="plan with those values")
        return min(found, key=lambda option: option.error)

    def __iter__(self) -> Iterator[Option]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)

    def as_json(self) -> dict[str, Any]:
        """The plan for a machine; the best option is marked."""
        options = [
            {**each, "best": option is self.best}
            for each, option in zip(self.as_dicts(), self.options, strict=True)
        ]
        return {
            "records": self.records,
            "density": self.density,
            "densities": list(self.densities),
            "basis": self.basis,
            "of": self.of,
            "options": options,
        }

    def as_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each option, for machines."""
        return [option.as_json() for option in self.options]

    def shown(self, most: int = MOST_SHOWN) -> tuple[Option, ...]:
        """The best options of what was requested, and the best one of each promise shown for comparison.

        Of several promises each has its part of the ``most``, and one at least.
        """
        groups: dict[tuple[float | None, ...], list[Option]] = {}
        for option in self.options:
            groups.setdefault((option.epsilon, option.delta, option.rho), []).append(option)
        requested = sum(options[0].requested for options in groups.values())
        part = max(1, most // max(1, requested))
        return tuple(
            option
            for options in groups.values()
            for option in sorted(options, key=lambda each: each.error)[: part if options[0].requested else 1]
        )

    def table(self, most: int = MOST_SHOWN) -> tuple[list[str], list[list[str]]]:
        """Head and rows as text, with * before the best."""
        options, best = self.shown(most), self.best
        errors = (_FEW, _MANY) if self.guessed else (_OF_KNOWN,)
        head = ["", *_HEAD, *errors, *_HEAD_OF_FILE]
        return head, [["*" if each is best else "", *self._cells(each)] for each in options]

    @property
    def guessed(self) -> bool:
        """Whether the density is a guess, so that errors are predicted for a low and a high one."""
        return self.densities[0] < self.densities[-1]

    def note(self, most: int = MOST_SHOWN) -> str:
        """What the numbers of the table are, and how many options it leaves out."""
        more = len(self.options) - len(self.shown(most))
        rest = f" {more} more options are in plan.options." if more else ""
        advice = narrow_bandwidth(self.best)
        if advice is not None:
            rest += f" {advice[0].upper()}{advice[1:]}."
        return f"{self.in_words()} {self.meaning()}{rest}"

    def meaning(self) -> str:
        """What the errors of the table are."""
        answers = "sums f(q), as a share of all records" if self.of == SUM else "means f(q)/N"
        errors = f"Errors are mean absolute errors of {answers}"
        if self.guessed:
            low, middle, high = (f"{each:.2g}" for each in self.densities)
            return (
                f"{errors}. How large f(q)/N is can only be guessed: sparse is the error where it is {low}, "
                f"dense where it is {high}, and error the mean of both and of that where it is {middle}."
            )
        what = "a bound" if self.basis == BOUND else "an estimate from public data"
        return f"{errors} where f(q)/N is {self.density:.3g}; the error of hash rows is {what}."

    def in_words(self) -> str:
        """The error of the best option, in one or two sentences."""
        best = self.best
        if best.move is not None:
            return (
                f"A test of two such releases (*) finds with probability 1/2 that all records moved by "
                f"{best.move:.2g} of the declared ranges, for {self.records:,} records each."
            )
        error = kernels.error_in_words(self.kernel, best.error, self.records)
        text = f"The best option (*) has an error of {error}, for {self.records:,} records."
        if not self.guessed:
            return text
        few, many = (
            kernels.amount_in_words(self.kernel, each, self.records)
            for each in (best.sparse_error, best.dense_error)
        )
        return f"{text} Where few records are near, the error is {few}; where most are near, {many}."

    def __str__(self) -> str:
        head, rows = self.table()
        widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
        text = [
            " ".join(
                cell.ljust(w) if i < 4 else cell.rjust(w + 1)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in (head, *rows)
        ]
        return "\n".join([*text, "", self.note()])

    def __repr__(self) -> str:
        best = self.best
        return (
            f"Plan(best={best.method!r}, mechanism={best.mechanism!r}, table={best.rows}×{best.width}, "
            f"error={best.error:.3g}, options={len(self.options)})"
        )

    def _repr_html_(self) -> str:
        """The best options as a table, for notebooks."""
        return _html.block("Plan", _html.table(*self.table()), _html.paragraph(self.note()))

    def _cells(self, option: Option) -> tuple[str, ...]:
        promise = f"rho={option.rho:g}" if option.rho is not None else f"eps={option.epsilon:g}"
        if option.delta:
            promise += f", delta={option.delta:g}"
        table = f"{option.rows}×{option.width}" + (", rounded" if option.rounded else "")
        errors = [f"{each:.2e}" for each in (option.noise, option.approximation, option.error)]
        if self.guessed:
            errors += [f"{option.sparse_error:.2e}", f"{option.dense_error:.2e}"]
        else:
            errors.append(f"{option.error / self.density:.1%}")
        of_file = bytes_in_words(option.size), in_seconds(option.seconds)
        return (option.method, option.mechanism, promise, table, *errors, *of_file)


Best = Callable[[float, float | None], Sequence[Option]]
"""The best option for ε and δ; none where no method can make that promise."""


def promise_for_error(
    error: float, best: Best, deltas: Sequence[float | None], *, alone: bool, declare_bounds: bool
) -> tuple[float, float | None]:
    """The smallest ε of two digits at which the best option has at most this error, and its δ.

    The first of ``deltas`` with which some ε reaches the error is taken. Errors fall with ε, so the
    candidates are halved. ``alone`` is whether neither ε nor ρ was given, and ``declare_bounds`` whether
    declared bounds would allow further methods.

    Raises
    ------
    UsageError
        if no ε up to `LARGE_EPSILON` reaches the error, or ε or ρ was given too. A larger ε would be a number
        in place of a promise, and a reader who requests an error may overlook it.
    """
    target = kernels.positive_number("error", error, remedy="give a mean absolute error such as 0.001")
    if not alone:
        raise UsageError(
            "error", ("must be given without ", NameOf("epsilon"), " and ", NameOf("rho")), got="both"
        )
    reachable = {delta: [option.error for option in best(privacy.LARGE_EPSILON, delta)] for delta in deltas}
    for delta, errors in reachable.items():
        if errors and errors[0] <= target:
            candidates = [float(f"{digits}e{power}") for power in range(-5, 0) for digits in range(10, 100)]
            reached = bisect_left(candidates, True, key=lambda e: best(e, delta)[0].error <= target)
            return [*candidates, privacy.LARGE_EPSILON][reached], delta
    least = [each for errors in reachable.values() for each in errors]
    further = ("declare ", NameOf("bounds"), ", which allows better methods, ") if declare_bounds else ()
    raise UsageError(
        "error",
        (
            "must be one that some option reaches with ",
            NameOf("epsilon"),
            f" of at most {privacy.LARGE_EPSILON:g}" + (f", at least {_above(min(least))}" if least else ""),
        ),
        got=f"{error:g}",
        remedy=(*further, "plan for more records or a larger bandwidth, or accept a larger error"),
    )


def _above(error: float) -> str:
    """A number of two digits that is not below an error.

    >>> _above(0.00321), _above(0.25)
    ('0.0033', '0.25')
    """
    step = 10.0 ** (floor(log10(error)) - 1)
    return f"{ceil(error / step - 1e-9) * step:.2g}"


# Bounds reach beyond the range of the sample by this part of it, on either side.
_WIDER: Final = 0.1
_LEAST: Final = 1e-9
_NORMAL_QUARTILES: Final = 1.349
_FINE: Final = 2
_MOST_ROWS: Final = 4000
_MOST_QUERIES: Final = 500


def kernel_of_sample(
    spec: KernelSpec, *, dim: int | None, public: object, records: int, bounds: DeclaredBounds | None = None
) -> Kernel:
    """The kernel, with the bandwidth of the sample where none is given and the kernel has one.

    Silverman's rule for a density of n records in d columns: s·(4/((d + 2)·n))^(1/(d + 4)), s the
    geometric mean over columns of the standard deviation or of quartiles, whichever is smaller. Where the
    bandwidth is a fraction of bounds, all of that is of the columns in units of their ranges.
    """
    names = kernels.parameter_names(spec.name)
    if "dim" in names and dim is None:
        dim = _width(public)
    columns = column_names_of(public)
    if spec.bandwidth is not None or "bandwidth" not in names or "dim" not in names:
        chosen = spec.plain(dim, columns, bandwidth=spec.bandwidth)
        return spec.build(dim, columns, bounds_of_sample(chosen, bounds, public))
    assert dim is not None
    rows = _rows(public, dim)
    one = spec.plain(dim, None, bandwidth=1.0)
    width = one.width if isinstance(one, ColumnKernel) else 1.0
    declared = bounds_of_sample(one, bounds, public, beyond=False)
    units = np.array(kernels.in_units(one, spec.scale, declared, columns))
    smooth = silverman(rows / units, records)
    found = spec.plain(dim, None, bandwidth=rounded_bandwidth(smooth / width))
    return kernels.scaled_by(found, units.tolist()) if isinstance(found, ColumnKernel) else found


def silverman(rows: Floats, records: int) -> float:
    """Silverman's bandwidth of a Gaussian density of that number of records, spread like the rows."""
    dim = rows.shape[1]
    return _spread(rows) * float((4.0 / ((dim + 2.0) * records)) ** (1.0 / (dim + 4.0)))


def rounded_bandwidth(bandwidth: float) -> float:
    """A bandwidth to two digits: it is a rule of thumb."""
    return float(f"{bandwidth:.{_FINE}g}")


def bounds_of_sample(
    kernel: Kernel, bounds: DeclaredBounds | None, public: object, *, beyond: bool = True
) -> DeclaredBounds | None:
    """The bounds given, or those of the sample and a tenth of its range beyond, at least a bandwidth where
    ``beyond``; for kernels of columns and samples that are large enough.
    """
    if bounds is not None or not isinstance(kernel, ColumnKernel):
        return bounds
    rows = as_dense(public, dim=kernel.dim).astype(np.float64)
    if len(rows) < FEWEST_POINTS:
        return None
    low, high = rows.min(axis=0), rows.max(axis=0)
    reach = np.maximum(_WIDER * (high - low), kernel.column_bandwidths() if beyond else _LEAST)
    pairs = tuple(zip((low - reach).tolist(), (high + reach).tolist(), strict=True))
    names = column_names_of(public)
    return pairs if names is None or len(names) != kernel.dim else dict(zip(names, pairs, strict=True))


def density_of_sample(kernel: Kernel, public: object, queries: object) -> float | None:
    """The mean kernel value of public records at public queries, or at each other; None for kernels that have
    no columns of numbers, and for samples that are too small.

    >>> import hushsum as hs
    >>> sample = np.linspace(0.0, 1.0, 200)[:, None]
    >>> round(density_of_sample(hs.GaussianKernel(dim=1, bandwidth=0.1), sample, None), 2)
    0.23
    """
    if not isinstance(kernel, ColumnKernel):
        return None
    rows = as_dense(public, dim=kernel.dim).astype(np.float64)
    if len(rows) < FEWEST_POINTS:
        return None
    rows = _thinned(rows, _MOST_ROWS)
    own = queries is None
    places = _thinned(rows if own else as_dense(queries, dim=kernel.dim).astype(np.float64), _MOST_QUERIES)
    # A record's kernel with itself is 1, and says nothing of others.
    density = float((kernel.exact_sum(rows, places).mean() - own) / (len(rows) - own))
    return min(max(density, _LEAST), 1.0)


def _thinned(rows: Floats, most: int) -> Floats:
    """Evenly spread rows, at most ``most`` of them."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64))]


def _width(public: object) -> int:
    shape: Any = getattr(public, "shape", None) or np.asarray(public).shape
    return 1 if len(shape) == 1 else int(shape[1])


def _rows(public: object, dim: int) -> Floats:
    rows = as_dense(public, dim=dim).astype(np.float64)
    if len(rows) < FEWEST_POINTS:
        remedy = "give more public rows, or declare bandwidth and bounds"
        raise DataRefused("public", f"must have at least {FEWEST_POINTS} rows", got="fewer", remedy=remedy)
    return rows


def _spread(rows: Floats) -> float:
    quartiles = np.diff(np.quantile(rows, (0.25, 0.75), axis=0), axis=0)[0] / _NORMAL_QUARTILES
    deviations = rows.std(axis=0)
    smaller = np.where(quartiles > 0.0, np.minimum(quartiles, deviations), deviations)
    varying = smaller[smaller > 0.0]
    return math.exp(float(np.log(varying).mean())) if len(varying) else 1.0


CENTRAL: Final = "central"
FEDERATED: Final = "federated"
SITES: Final = "sites"
SHUFFLED: Final = "shuffled"
LOCAL: Final = "local"
of_trust = partial(setting, group="Trust")
TRUST_MODELS: Final = (CENTRAL, FEDERATED, SITES, SHUFFLED, LOCAL)
_REPORTS: Final = "reports"
_ROWS: Final = (100, 200, 500, 1000, 2000, 5000)
_WIDTH: Final = 1000
_NANOSECONDS_REPORT: Final = 400.0


@dataclass(frozen=True, slots=True)
class TrustModel:
    """Who is trusted, the number of sites, and how many of them may drop out and may collude, with each other
    or with the server.
    """

    name: str = of_trust(
        CENTRAL,
        "Who sees records: central, federated, sites, shuffled or local.",
        name="trust",
        choices=TRUST_MODELS,
        metavar="MODEL",
    )
    sites: int | None = of_trust(None, "Number of sites that count.", at_least=1, at_most=1 << 20)
    dropouts: int = of_trust(0, "Sites that may fail, with --trust federated.", at_least=0, at_most=1 << 20)
    colluding: int | None = of_trust(
        None, "Colluding sites, with --trust federated. [default: 1]", at_least=0, at_most=1 << 20
    )

    def __post_init__(self) -> None:
        kernels.one_of("trust", self.name, TRUST_MODELS)
        several = self.name in (FEDERATED, SITES)
        if several != (self.sites is not None):
            rule = f"must be given where trust is {FEDERATED!r} or {SITES!r}, and only there"
            got = "none" if self.sites is None else f"{self.sites}"
            remedy = "give the number of sites" if several else "leave it out"
            raise UsageError("sites", rule, got=got, remedy=remedy)
        for name, value in (("dropouts", self.dropouts), ("colluding", self.colluders)):
            if value < 0 or (value and self.name != FEDERATED):
                raise UsageError(
                    name, f"must be at least 0, and 0 unless trust is {FEDERATED!r}", got=f"{value}"
                )
        if self.colluders + 2 * self.dropouts >= self.parties and self.name == FEDERATED:
            rule = "and twice the dropouts must be below the number of sites together"
            got = f"{self.colluders} and {self.dropouts} of {self.parties}"
            raise UsageError("colluding", rule, got=got, remedy="allow fewer")

    @property
    def parties(self) -> int:
        """The number of sites, 1 where there is one curator."""
        return 1 if self.sites is None else kernels.positive_integer("sites", self.sites, at_most=1 << 20)

    @property
    def colluders(self) -> int:
        """How many sites may collude: a site knows its own noise, so 1 unless another number is given."""
        return int(self.name == FEDERATED and self.parties >= 2) if self.colluding is None else self.colluding

    @property
    def reported(self) -> bool:
        """Whether every person sends a report, and nobody counts records."""
        return self.name in (SHUFFLED, LOCAL)

    @property
    def noise_variance(self) -> float:
        """The variance of the noise, as a multiple of its variance under a trusted curator."""
        if self.name == FEDERATED:
            return self.parties / (self.parties - self.dropouts - self.colluders)
        return float(self.parties)

    def mechanism(self, promise: Promise) -> str | None:
        """The distribution that noise must have; None for the better one. Shares of noise have distributions
        that add up, which the Gamma-radius distribution does not.
        """
        return None if self.name != FEDERATED else privacy.LAPLACE if promise.pure else privacy.GAUSSIAN

    def applied(self, option: Option) -> Option:
        """An option of a curator's, with the noise of this model."""
        more = (self.noise_variance - 1.0) * option.noise**2
        noise = option.noise * math.sqrt(self.noise_variance)
        return replace(
            option,
            noise=noise,
            error=math.hypot(option.error, math.sqrt(more)),
            sparse_error=math.hypot(option.sparse_error, math.sqrt(more)),
            dense_error=math.hypot(option.dense_error, math.sqrt(more)),
        )

    def report_options(self, request: PredictionRequest) -> list[Option]:
        """The predicted errors of reports, for some numbers of rows; none for kernels that do not hash.

        Every person's sign has the variance 1/tanh²(ε/2), so that of f(q)/N is 1/(N·tanh²(ε/2)), whatever the
        number of rows; the approximation is that of hash rows of N records.
        """
        kernel, promise = request.kernel, request.promise
        if not isinstance(kernel, HashableKernel) or promise.epsilon is None:
            return []
        if (self.name == SHUFFLED) == promise.pure:
            return []
        epsilon = float(promise.epsilon)
        if self.name == SHUFFLED:
            epsilon = local_epsilon_for(epsilon, request.records, float(promise.delta))
        made = []
        # The number of persons is public.
        request = replace(request, count_share=Fraction(0))
        sizes = _ROWS if request.rows is None else request.rows
        for rows in [sizes] if isinstance(sizes, int) else sizes:
            basis = HashRows(kernel, rows, request.width or _WIDTH, 0)
            variance = request.row_variance(basis.width)
            keep = 1.0 / (1.0 - basis.fold_rate)
            noise = keep / (privacy.sign_gain(privacy.exact("epsilon", epsilon)) * math.sqrt(request.records))
            hashing = float(np.sqrt(keep**2 * variance.row_variance / rows).mean())
            error = NORMAL_MEAN_ABSOLUTE * math.hypot(noise, hashing)
            made.append(
                Option(
                    method=_REPORTS,
                    request=request,
                    settings={"rows": rows, "width": basis.width, "local_epsilon": epsilon},
                    mechanism=str(privacy.HADAMARD if self.name == LOCAL else privacy.SHUFFLED_HADAMARD),
                    shape=basis.shape,
                    noise=NORMAL_MEAN_ABSOLUTE * noise,
                    approximation=NORMAL_MEAN_ABSOLUTE * hashing,
                    error=error,
                    size=rows * basis.width * (2 if request.records < 2**15 else 4) + HEADER_BYTES,
                    seconds=request.records * _NANOSECONDS_REPORT * 1e-9,
                )
            )
        return made


COMPARISON_DELTA = 1e-6
FEW_COLUMNS = 2
"""For up to this many columns, the advice to leave a column out is useless."""
of_privacy = partial(setting, group=privacy.PRIVACY)
MAX_BYTES = 64_000_000
MAX_SECONDS = 60.0


@request
class PlanRequest:
    """What is planned: a release of a declared number of records; its fields are the keywords of
    :func:`plan`.
    """

    records: int = required(
        "Number of records, declared or guessed; the true number is private.", at_least=1, at_most=1 << 50
    )
    dim: int | None = setting(None, "Columns of a record.", at_least=1, at_most=1 << 20)
    kernel: KernelSpec | Kernel | str | None = field(default_factory=KernelSpec)
    bandwidth: float | None = None
    scale: str | None = None
    epsilon: tuple[float, ...] | Sequence[float] | float | None = setting(
        None, "ε, or several to compare.", above=0, below=1e9, metavar="E[,E...]"
    )
    error: float | None = setting(None, "Find the smallest ε with this predicted mean error.", above=0)
    delta: float | None = setting(None, privacy.DELTA)
    rho: float | None = setting(None, privacy.RHO)
    bounds: DeclaredBounds | None = setting(None, BOUNDS)
    method: str = setting(privacy.AUTO, METHOD)
    purpose: str = setting(QUERIES, PURPOSE)
    rows: tuple[int, ...] | Sequence[int] | int | None = of_table(
        None, "Rows of a race table, or several to compare.", at_least=1, at_most=10**8, metavar="R[,R...]"
    )
    width: int | None = setting(None, WIDTH)
    steps: DeclaredSteps | None = setting(None, STEPS)
    seed: int = 0
    density: float | None = of_table(
        None, "Mean kernel value at the queries of interest. [default: a typical one]", above=0, at_most=1
    )
    of: str = of_table(
        MEAN, "What answers are: mean kernel values f(q)/N, or sums f(q).", choices=(MEAN, SUM)
    )
    relation: str | Relation = setting(Relation.ADD_REMOVE, privacy.RELATION)
    max_per_unit: int | None = of_privacy(
        None, "Maximum number of records per person.", at_least=1, at_most=1 << 20
    )
    trust: TrustModel | str = CENTRAL
    sites: int | None = None
    dropouts: int = 0
    colluding: int | None = None
    public: object = None
    queries: object = None
    mechanism: str | None = None
    count_share: float | Fraction | None = None
    max_bytes: int = MAX_BYTES
    max_seconds: float = MAX_SECONDS
    reading: Reading | None = None
    comparison: bool = True
    tallies_only: bool = False

    @property
    def declared_kernel(self) -> KernelSpec | Kernel:
        """The kernel. A kernel given by name has the bandwidth and scale that are given beside it."""
        if isinstance(self.kernel, Kernel):
            return self.kernel
        named = self.kernel if isinstance(self.kernel, KernelSpec) else KernelSpec(kernel=self.kernel)
        beside: dict[str, Any] = {"bandwidth": self.bandwidth, "scale": self.scale}
        return replace(named, **{name: value for name, value in beside.items() if value is not None})

    @property
    def trust_model(self) -> TrustModel:
        """The trust model. One given by name has the numbers of sites that are given beside it."""
        named = self.trust
        return (
            TrustModel(named, self.sites, self.dropouts, self.colluding) if isinstance(named, str) else named
        )

    def plan(self) -> Plan:
        """The predicted error of each method of release."""
        kernel, bounds, epsilon, delta = self.declared_kernel, self.bounds, self.epsilon, self.delta
        model = self.trust_model
        kernels.one_of("purpose", self.purpose, (QUERIES, COMPARISON))
        comparing = self.purpose == COMPARISON and not model.reported
        tallies_only, count_share = self.tallies_only or comparing, self.count_share
        number = kernels.positive_integer("records", self.records, at_most=1 << 50)
        if self.reading is not None or model.name != CENTRAL:
            # A tally that exists, or is made at several sites, is released with the usual share.
            tallies_only, count_share = True, privacy.COUNT_SHARE if count_share is None else count_share
        if isinstance(kernel, KernelSpec):
            method = "race" if model.reported else self.method
            kernel = kernel.for_records(method=method, rows=self.rows, width=self.width)
            if self.purpose == COMPARISON and self.public is None:
                kernel = kernel.for_comparison(self.dim)
        if self.reading is not None:
            chosen, box, on_steps = self.reading.kernel, self.reading.basis.bounds, None
        else:
            if self.public is not None:
                if isinstance(kernel, KernelSpec):
                    kernel = kernel_of_sample(
                        kernel, dim=self.dim, public=self.public, records=number, bounds=bounds
                    )
                if self.rows is None and self.width is None:
                    bounds = bounds_of_sample(kernel, bounds, self.public)
            known = list(bounds) if isinstance(bounds, dict) else None
            if isinstance(kernel, KernelSpec):
                chosen = kernel.example(self.dim, bounds, known)
            else:
                chosen = kernels.in_scale(kernel, self.scale, bounds, known, default=False)
            box, names = (None, None) if chosen.dim is None else declared_bounds(bounds, dim=chosen.dim)
            steps = step_of_columns(self.steps) if isinstance(self.steps, tuple) else self.steps
            on_steps = None if box is None else declared_steps(steps, box, names)
        methods = _methods(self.method, chosen, tallies_only=tallies_only)
        known_density = None if self.density is None else _density(self.density)
        if known_density is None and self.public is not None and not kernels.HASH_ROWS.test(chosen):
            known_density = density_of_sample(chosen, self.public, self.queries)
        typical = typical_density(chosen, box) if known_density is None else known_density
        variances = row_variances(
            chosen, records=number, seed=self.seed, density=typical, public=self.public, queries=self.queries
        )
        measured = variances(row_width(self.reading, self.width)) if kernels.HASH_ROWS.test(chosen) else None
        place = float(measured.density.mean()) if measured is not None else typical
        guessed = known_density is None and measured is None and not kernels.INNER_PRODUCT.test(chosen)
        densities = likely_densities(place) if guessed else (place,) * 3
        kernels.one_of("of", self.of, (MEAN, SUM))

        most_seconds = kernels.positive_number("max_seconds", self.max_seconds, remedy="try 60")

        def options_for(promise: Promise, *, requested: bool) -> list[Option]:
            suits = (self.mechanism in privacy.PURE_MECHANISMS) == promise.pure
            request = PredictionRequest(
                records=number,
                kernel=chosen,
                bounds=box,
                promise=promise,
                relation=Relation.of(self.relation),
                count_share=None if count_share is None else privacy.exact("count_share", count_share),
                per_unit=None
                if self.max_per_unit is None
                else kernels.positive_integer("max_per_unit", self.max_per_unit, at_most=1 << 20),
                density=place,
                densities=densities,
                of=self.of,
                max_bytes=kernels.positive_integer("max_bytes", self.max_bytes, at_most=1 << 50),
                requested=requested,
                row_variance=variances,
                rows=self.rows,
                width=self.width,
                mechanism=model.mechanism(promise) or (self.mechanism if suits else None),
                steps=on_steps,
            )
            if model.reported:
                group = model.report_options(request)
            elif comparing:
                group = [model.applied(each) for each in self._compared(methods, request)]
            else:
                each = [request]
                if promise.delta and request.mechanism is None and self.reading is None:
                    # Each kind of noise with the sizes and the share of the count that suit it; a tally that
                    # exists is released with the one that its calibration takes.
                    pure = replace(request, promise=replace(promise, delta=Fraction(0)))
                    each = [replace(request, mechanism=privacy.GAUSSIAN), *([pure] if requested else [])]
                found = (option for one in each for option in _options(methods, one, self.reading))
                group = [model.applied(option) for option in found]
            quick = [option for option in group if option.seconds <= most_seconds or self.rows is not None]
            quick = quick or sorted(group, key=lambda option: option.seconds)[:1]
            return sorted(quick, key=lambda option: option.error)

        if self.error is not None:
            epsilon, delta = promise_for_error(
                self.error,
                lambda e, d: options_for(Promise.of(epsilon=e, delta=d), requested=True)[:1],
                (None, COMPARISON_DELTA) if delta is None else (delta,),
                alone=epsilon is None and self.rho is None,
                declare_bounds=box is None and any(each.needs_bounds for each in methods),
            )
        requested = [Promise.of(epsilon=e, delta=delta, rho=self.rho) for e in _each(epsilon)]
        shown = [(promise, True) for promise in requested]
        if self.comparison and delta is None and self.rho is None and not model.reported:
            shown += [(Promise.of(epsilon=each.epsilon, delta=COMPARISON_DELTA), False) for each in requested]
        options = [option for promise, own in shown for option in options_for(promise, requested=own)]
        if not options:
            if model.reported:
                raise _no_reports(chosen, model)
            raise _nothing(chosen, self.reading, methods, box is not None)
        basis = BOUND if measured is None else measured.source
        return Plan(tuple(options), number, place, densities, basis, chosen, self.of)

    def _compared(self, methods: Sequence[Method], request: PredictionRequest) -> list[Option]:
        """The option for a comparison: one, since the owners of both releases must take the same."""
        if self.reading is None:
            found = [comparison_option(methods, request, self.seed)]
        else:
            found = [
                option_of_reading(each, request, self.reading) for each in methods if each.predict_reading
            ]
        return [each for each in found if each is not None]


@taking_fields_of(PlanRequest)
def plan(request: PlanRequest) -> Plan:
    """The predicted error of each method of release, before any budget is spent.

    Parameters
    ----------
    records : int
        The number of records, declared or guessed; under add/remove the true number is private, so do not
        pass ``len(X)``.
    dim, bandwidth, kernel
        As for the kernel; a kernel object replaces all three. The default kernel is that of
        :func:`hushsum.release`, and Euclidean for reports, which need one that hashes.
    epsilon : float or list of float
        Pure ε unless ``delta`` is given.
    delta, rho : float
        As for a release.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name, optional
        Declared; grids need them.
    method : str
        ``"auto"`` compares all of ``hushsum.methods.planned_methods()`` that can release the kernel.
    purpose : {"query", "compare"}, optional
        As for :func:`hushsum.release`. For a comparison there is one option for each promise, the ``move`` of
        which says how far records must move for a test to find it.
    rows, width : int or list of int
        Table sizes of hash rows to compare.
    density : float, optional
        The mean kernel value f(q)/N of the queries that matter; the error of hash rows is then a bound.
        Default: that of the public data; else 0.01 for kernels that hash, and a typical one for the box and
        the number of columns for others.
    public : records, optional
        Public data that resemble the private ones. The error of hash rows is then an estimate. They decide
        the density, the number of columns, the bandwidth (Silverman's rule for the declared number of
        records) and the bounds (their range and a tenth of it beyond) where these are not given; the bounds
        not where sizes of hash rows are.
    of : {"mean", "sum"}
        What answers are, as for ``f.query``. Sums are not divided by a noisy number of records, so that
        nearly the whole budget is for the table: release with the ``count_share`` of the option. Errors are a
        share of the declared records.
    queries : records, optional
        Public queries to estimate it at; default: the public records themselves.
    mechanism : {"discrete laplace", "gamma radius", "discrete gaussian"}, optional
        The distribution of the noise of tables under pure ε. Default: the one of less variance.
    count_share : float, optional
        The part of the budget for the noisy number of records. Default: the one of least error, for each
        option.
    max_per_unit : int, optional
        As for the tally: plan for persons with up to this many records.
    max_bytes : int
        The largest file to consider.
    max_seconds : float
        The longest time to count, roughly and on one core.
    steps : float, list of float or None, or a dictionary by column name, optional
        Of columns whose values are multiples of a step, as for :func:`hushsum.grid`. Grids with nodes on the
        steps are then compared too.
    reading : Reading, optional
        ``tally.reading`` of a tally that exists. The plan is for releasing it as it is: its kernel, bounds
        and shape replace those above.
    error : float, optional
        In place of ``epsilon``: plan for the smallest ε, to two digits, at which the best option has this
        predicted mean absolute error. Where no pure ε up to 10 reaches it, and δ is not given, δ is 1e-6.
        An error that no ε up to 10 reaches is refused: above it hardly anything is hidden.
    comparison : bool
        Where neither ``delta`` nor ``rho`` is given, also show options with δ = 1e-6. They are never chosen
        as the best, so the best option is found sooner without them.
    tallies_only : bool
        Compare only methods that count in a tally, which can be merged, streamed and released later.
    trust : {"central", "federated", "sites", "shuffled", "local"}
        Who may see the records: one curator; sites that add their noisy tables by secure aggregation; sites
        that each release with noise of their own; or nobody, when every person sends one report, which a
        shuffler separates from its sender or not. Shuffled reports need ``delta``, local ones have none.
    sites, dropouts, colluding : int
        How many sites there are; of federated ones, how many may fail during the run, and how many may use
        what they know, alone or together with the server: the noise of the others suffices. A site knows its
        own noise, so ``colluding`` is 1 by default where there are two sites or more.
    scale : {"units", "bounds"}, optional
        What the bandwidth is measured in, as for :func:`hushsum.release`.

    Notes
    -----
    Where neither ``density`` nor public data are given, the density is guessed from the box, and errors are
    predicted for a low, a middle and a high one: ``sparse_error`` where records are spread over the box,
    ``dense_error`` where most of them are in a small part of it, and ``error``, by which options are
    compared, the mean of those at all three. The part of the budget for the number of records is the one
    that costs at most the smallest factor at any of them over the part that suits it best. Measured over
    planned errors: ``benchmarks/results/concentrated.md``. Declare a ``density`` if it is known.

    Examples
    --------
    >>> import hushsum as hs
    >>> hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=3.5, bounds=(0, 255)).best.method
    'grid'
    >>> p = hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=5.0, kernel="euclidean")
    >>> p.best.mechanism, p.best.rows
    ('discrete laplace', 5000)
    >>> hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=5.0, trust="local").best.method
    'reports'
    >>> hs.plan(records=241_000, dim=3, error=0.003, bandwidth=5.0).best.epsilon
    0.05
    """
    return request.plan()


def _methods(name: str, kernel: Kernel, *, tallies_only: bool) -> list[Method]:
    """The methods whose error is predicted and that take the kernel.

    A method that was named must satisfy both.
    """
    planned = [method_named(each) for each in planned_methods()]
    planned = [each for each in planned if each.tally is not None or not tallies_only]
    if name == privacy.AUTO:
        return [each for each in planned if each.role.test(kernel) and not each.named_only]
    if name not in [each.name for each in planned]:
        names = ", ".join(each.name for each in planned)
        raise UsageError("method", f"must be {privacy.AUTO!r} or one of {names}", got=f"{name!r}")
    method = method_named(name)
    method.role.check(kernel, name)
    return [method]


def _options(methods: Sequence[Method], request: PredictionRequest, reading: Reading | None) -> list[Option]:
    options: list[Option] = []
    for method in methods:
        if reading is None and method.predict is not None:
            options += method.predict(request)
        elif reading is not None and method.predict_reading is not None:
            options += method.predict_reading(request, reading)
    return options


def _density(density: float) -> float:
    number = kernels.positive_number("density", density)
    if number > 1:
        raise UsageError("density", "must be at most 1", got=f"{density}", remedy="it is a mean kernel value")
    return number


def _nothing(kernel: Kernel, reading: Reading | None, methods: Sequence[Method], bounded: bool) -> UsageError:
    if reading is not None:
        return UsageError(
            f"the error of {reading.basis.name} is not predicted", remedy="release it without a plan"
        )
    if not methods:
        names = ", ".join(planned_methods())
        return UsageError(
            f"none of {names} can release the {kernel.name} kernel", remedy="use another kernel"
        )
    names = ", ".join(method.name for method in methods)
    if not bounded:
        return UsageError(
            f"{names} cannot release the {kernel.name} kernel like this",
            remedy=("declare ", NameOf("bounds")),
        )
    wider: tuple[Part, ...] = ("a larger ", NameOf("bandwidth"), " or narrower ", NameOf("bounds"))
    many = kernel.dim is None or kernel.dim > FEW_COLUMNS
    return UsageError(
        (
            f"{names} must have a table that is small enough for the ",
            NameOf("bandwidth"),
            ", the ",
            NameOf("bounds"),
            " and the number of columns",
        ),
        got="none",
        remedy=("use fewer columns, ", *wider) if many else ("give ", *wider),
    )


def _no_reports(kernel: Kernel, model: TrustModel) -> UsageError:
    if not isinstance(kernel, HashableKernel):
        return UsageError(
            f"reports need a kernel that hashes, which the {kernel.name} kernel does not",
            remedy="use another kernel",
        )
    return UsageError(
        "delta",
        f"must {'be given' if model.name == SHUFFLED else 'not be given'} for {model.name} reports",
        remedy="see docs/explanation/trust.md",
    )


def _each(epsilon: float | Sequence[float] | None) -> Iterable[float | None]:
    if isinstance(epsilon, Sequence):
        if not epsilon:
            raise UsageError("epsilon", "must hold at least one value", got="none", remedy="try [0.5, 1.0]")
        return epsilon
    return [epsilon]


_SIGNIFICANT: Final = 2.0
"""The standard errors from which on a value differs from zero, by a 95 % interval."""

_MOST_COLUMNS: Final = 2
"""In more columns records never fill a box evenly, and most of it is empty in any case."""

_STEP, _STEPS = 1.1, 48


def narrow_bandwidth(option: Option) -> str | None:
    """What is wrong with the bandwidth of an option for a declared number of records; None if it suits.

    Records that are spread evenly over the declared box have a mean kernel value of ∫k over the volume of the
    box. Where two predicted standard errors are more than that, most places of a curve or a map do not differ
    from zero. The bandwidth that is named is the narrowest, to a tenth, at which the same plan has two
    standard errors or more.

    >>> import hushsum as hs
    >>> plan = hs.plan(records=2000, dim=2, bandwidth=0.1, bounds=(0, 10), epsilon=0.1)
    >>> narrow_bandwidth(plan.best)
    'the bandwidth is too small for 2,000 records: if they were spread evenly over the bounds, 1.3 of them \
would be near a place, with a standard error of 36; a bandwidth of 0.81 suits that number'
    """
    request = option.request
    kernel, bounds = request.kernel, request.bounds
    if bounds is None or not isinstance(kernel, ColumnKernel) or bounds.dim > _MOST_COLUMNS or kernel.signed:
        return None
    if not math.isfinite(kernel.integral()) or option.move is not None:
        return None
    even, error = _even(kernel, bounds), _error(option, kernel, bounds)
    if even >= _SIGNIFICANT * error:
        return None
    records = request.records
    found = (
        f"the bandwidth is too small for {records:,} records: if they were spread evenly over the bounds, "
        f"{_written(even * records)} of them would be near a place, with a standard error of "
        f"{_written(error * records)}"
    )
    for step in range(1, _STEPS):
        wider = scaled_by(kernel, [_STEP**step] * bounds.dim)
        # Wider kernels have no less noise.
        possible = _even(wider, bounds) >= _SIGNIFICANT * error
        if possible and _even(wider, bounds) >= _SIGNIFICANT * _error(option, wider, bounds):
            return f"{found}; {_suiting(kernel, _STEP**step)} suits that number"
    return f"{found}; no bandwidth suits it: declare more records, or a larger epsilon"


def warn_of_narrow_bandwidth(option: Option, *, level: int = 3) -> None:
    """Warn of it before anything is counted or debited; ``level`` is as of ``warnings.warn``."""
    found = narrow_bandwidth(option)
    if found is not None:
        warnings.warn(found, SuspiciousParameter, stacklevel=level + 1)


def _even(kernel: ColumnKernel, bounds: Bounds) -> float:
    return min(1.0, kernel.integral() / math.prod(bounds.widths))


def _error(option: Option, kernel: ColumnKernel, bounds: Bounds) -> float:
    """The standard error that noise is predicted to give such a mean kernel value, with the method of an
    option.
    """
    predict = method_named(option.method).predict
    assert predict is not None
    even = _even(kernel, bounds)
    asked = replace(option.request, kernel=kernel, density=even, densities=(even,) * 3)
    return min((each.noise for each in predict(asked)), default=math.inf) / NORMAL_MEAN_ABSOLUTE


def _suiting(kernel: ColumnKernel, factor: float) -> str:
    if "bandwidth" in kernel.parameters():
        return f"a bandwidth of {_written(kernel.bandwidth * factor)}"
    return f"one {_written(factor)} times as large"


def _written(number: float) -> str:
    """Two digits, without an exponent where that is short."""
    return f"{float(f'{number:.2g}'):g}"
