"""Models of one released table: which table counts a kernel, and the parameters that they share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.declaration import FROM_PUBLIC, INTEGER, NUMBER, TEXT, Parameter
from hushsum.errors import UsageError, shown
from hushsum.kernels import (
    HASH_ROWS,
    HASHABLE,
    SMOOTH_PROFILES,
    SPECTRAL,
    ColumnKernel,
    DotProductKernel,
    InnerProductKernel,
    Kernel,
    PolynomialKernel,
    Role,
    in_scale,
    kernel_as_json,
    kernel_from_json,
    kernel_names,
    named,
    parameter_names,
)
from hushsum.methods import FOURIER_FEATURES, GRID, MONOMIALS, RACE, method_named, planned_methods
from hushsum.models._accuracy import (
    PLANNED,
    PredictedError,
    error_of_hash_rows,
    part_of,
    planned_error,
    terms_of,
)
from hushsum.models._base import Drawn, PrivateModel, declared
from hushsum.models._parameters import SCALE
from hushsum.models._public_rows import USUAL_RECORDS, visible_bandwidth
from hushsum.privacy import Claim, Mechanism, Promise, ReleaseRequest
from hushsum.records import clipped_to_ball
from hushsum.releases import Bundle, NoisyTable, ReleasedFunction
from hushsum.tables import MOST_SQUARED
from hushsum.tally import Tally

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
    The parts count the same records, so they share the promise as `part_of` says.
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
        share = terms_of(part_of(claim.promise, Fraction(1, len(self.tallies))))
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
            "kernel", "must be a name or a list of names", got=shown(name), remedy="try 'gaussian'"
        )
    takes = parameter_names(name)
    if "dim" not in takes:
        raise UsageError(
            "kernel", "must be one of columns of numbers", got=f"{name!r}", remedy="try 'gaussian'"
        )
    if "bandwidth" not in takes:
        return [named(name, dim=dim)]
    return [in_scale(named(name, dim=dim, bandwidth=each), scale, box) for each in bandwidths]


def _listed(name: str, value: object) -> list[Any]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return [value]
    values = list(value)
    if not values or len(set(values)) != len(values):
        raise UsageError(name, "must name different values, at least one", remedy="give each once")
    return values


def _width(kernel: Kernel) -> float:
    return kernel.width if isinstance(kernel, ColumnKernel) else 1.0


POINTS = 4096


def normalising_constant(kernel: Kernel) -> float | None:
    """The integral of the kernel over all space; None where it has none, as hash kernels do.

    >>> from hushsum.kernels import GaussianKernel
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


def spread_points(low: Floats, high: Floats, number: int, seed: int) -> Floats:
    """Public points that fill a box evenly, shape (number, dim)."""
    from scipy.stats import qmc

    power = max(1, int(np.ceil(np.log2(max(number, 2)))))
    unit = qmc.Sobol(len(low), scramble=True, rng=np.random.default_rng(seed)).random_base2(power)
    return np.asarray(low + (high - low) * unit[:number], np.float64)


RADIUS = Parameter(
    "radius",
    NUMBER,
    "For vectors of a model: the length that no record exceeds, declared; 1 for vectors of length 1. "
    "Scores are then mean squared inner products, or mean inner products where the predicted noise "
    "is large beside 1/√columns; bandwidth, power, rows and width are not used.",
    above=0,
    optional=True,
)
METHOD: Final = MONOMIALS
MANY_COLUMNS: Final = 32
DECISIONS: Final = 20.0
"""Outliers are decided by squared inner products where their noise is so many times below 1/√columns. Looked
at on two of the four classes of AG News against a third one: squares are better at ε = 1, products at 0.1.
"""
RANKS: Final = 5.0
"""The same for counts of neighbours. Looked at on AG News: squares rank candidates better at ε = 0.1 too."""


def inner_product(
    dim: int, radius: float, promise: Promise, clear: float
) -> DotProductKernel | PolynomialKernel:
    """Squares where their noise is small for a usual number of records; looks at no data."""
    squares = PolynomialKernel(dim=dim, radius=float(radius))
    if dim <= MOST_SQUARED and clear * noise_of(squares, USUAL_RECORDS, promise) <= 1.0 / math.sqrt(dim):
        return squares
    return DotProductKernel(dim=dim, radius=float(radius))


def noise_of(kernel: Kernel, records: int, promise: Promise) -> float:
    """The predicted error of a score by inner products."""
    return planned_error(kernel, records, METHOD, bounds=None, **terms_of(promise))


def embedding_advice(dim: int, promise: Promise) -> list[str]:
    """What to say before hash rows are released in many columns."""
    if dim <= MANY_COLUMNS:
        return []
    said = [
        "in so many columns hash rows count near-duplicates and little else; for vectors of a text or image "
        "model declare radius, such as 1"
    ]
    if promise.pure:
        said.append("a delta lowers the noise of hash rows many times")
    return said


def in_ball(function: ReleasedFunction, queries: Floats) -> Floats:
    """Queries shortened to the radius of inner products: a long vector is not like many records."""
    kernel = function.kernel
    return clipped_to_ball(queries, kernel.radius) if isinstance(kernel, InnerProductKernel) else queries


NEAR = Parameter(
    "bandwidth",
    NUMBER,
    "How near records must be to count as similar; chosen without looking at the records. See scale.",
    above=0,
)
DENSITY_RULE = (
    " 'public': by Silverman's rule from the public rows, doubled until sums at a typical one of them stand "
    "out of the predicted noise."
)
POWER = Parameter("power", INTEGER, "The kernel to that power, which falls off faster.", at_least=1)
ROWS = Parameter(
    "rows", INTEGER, "Rows of the table; a release with pure ε publishes as many as suit it.", at_least=1
)
WIDTH = Parameter("width", INTEGER, "Cells of a row.", at_least=2)
KERNEL = Parameter(
    "kernel", TEXT,
    "With a hash kernel the records are counted into hash rows, with the Gaussian one into a grid (up "
    "to four "
    "columns) or random features.",
    choices=KERNELS, kernel=True,
)  # fmt: skip
PUBLIC_BANDWIDTH = replace(NEAR, help=NEAR.help + DENSITY_RULE, choices=(FROM_PUBLIC,))

PART = "sketch"
"""What the sketch is called in the bundle."""


def reach_of(kernel: Kernel, dim: int) -> Floats:
    """How far a step of the kernel is in each column: its bandwidth; half a radian for directions."""
    return np.array(kernel.column_bandwidths() if isinstance(kernel, ColumnKernel) else [0.5] * dim)


@declared
class TableModel(PrivateModel):
    """A model that counts its records into one tally, and releases that: hash rows for hash kernels, a grid
    for the Gaussian one in up to four columns, random features otherwise.

    A subclass has the parameters ``kernel``, ``bandwidth``, ``scale``, ``power``, ``rows`` and ``width``
    besides those of every model.

    Privacy
    -------
    The claim is that of the one table: everything else is computed from it.
    """

    kernel: Annotated[Any, KERNEL] = "gaussian"
    bandwidth: Annotated[float | str | None, PUBLIC_BANDWIDTH] = None
    scale: Annotated[str | None, SCALE] = None
    power: Annotated[int, POWER] = 2
    rows: Annotated[int, ROWS] = 1000
    width: Annotated[int, WIDTH] = 1000

    def _start(self, seed: int) -> Tally:
        return self._empty(seed)

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        if n_features is None or not promise.pure:
            return super()._mechanism(promise, n_features)
        return self._empty(0, n_features).prepare(ReleaseRequest(epsilon=promise.epsilon)).claim.mechanism

    def _empty(self, seed: int, n_features: int | None = None) -> Tally:
        kernel = self._kernel(n_features)
        return empty_table(
            kernel,
            self._table_method(kernel),
            box=self.column_bounds(n_features),
            columns=self._table_columns(),
            rows=self.rows,
            width=self.width,
            seed=seed,
        )

    def _count(self, secret: Tally, X: Floats, y: NDArray[Any] | None) -> None:
        secret.add(X)

    def _draw(self, secret: Tally, promise: Promise) -> Bundle:
        part = secret.release(**terms_of(promise))
        return self._bundle(Drawn({PART: part}, self._derived(part)))

    def _derived(self, sketch: Any) -> dict[str, NDArray[Any]]:
        """What else the bundle holds, computed from the released sketch alone."""
        return {}

    def _part_columns(self) -> dict[str, int]:
        return {PART: self.n_features_in_}

    def _open(self, bundle: Bundle) -> NoisyTable:
        sketch = bundle.parts[PART]
        if not isinstance(sketch, NoisyTable):
            raise UsageError(
                "the model's part must be a released table", got="something else", remedy="fit it again"
            )
        return sketch

    def _kernel(self, n_features: int | None = None, bandwidth: float | None = None) -> Kernel:
        """The kernel by its name, or as it was given; with another bandwidth, if there is one."""
        if isinstance(self.kernel, Kernel):
            return self._in_scale(self.kernel, n_features)
        used = self.effective("bandwidth", n_features) if bandwidth is None else bandwidth
        given = {"bandwidth": used, "power": self.power}
        taken: dict[str, Any] = {
            name: value for name, value in given.items() if name in parameter_names(self.kernel)
        }
        return self._in_scale(named(self.kernel, dim=self._width(n_features), **taken), n_features)

    def _in_scale(self, kernel: Kernel, n_features: int | None) -> Kernel:
        by_name = not isinstance(self.kernel, Kernel)
        scale = self.effective("scale", n_features)
        return in_scale(kernel, scale, self.column_bounds(n_features), default=by_name)

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The one kernel."""
        return [self._kernel(n_features)]

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        kernel, bounds = self._kernel(n_features), self.column_bounds(n_features)
        error = self._error_of(kernel, records, promise, bounds)
        return PredictedError("mean kernel value", error, records, PLANNED)

    def _error_of(self, kernel: Kernel, records: int, promise: Promise, bounds: Box) -> float:
        if HASH_ROWS.test(kernel):
            return error_of_hash_rows(
                kernel, records, promise, bounds=bounds, rows=self.rows, width=self.width
            )
        method = self._table_method(kernel)
        return planned_error(kernel, records, method, bounds=bounds, **terms_of(promise))

    def _table_method(self, kernel: Kernel) -> str:
        """What the records are counted into for a kernel."""
        return table_method(kernel, kernel.dim or 1)

    def _public_bandwidth(self, rows: Floats, promise: Promise) -> float:
        dim = rows.shape[1]
        box = self.column_bounds(dim)
        return visible_bandwidth(
            lambda bandwidth: self._kernel(dim, bandwidth),
            rows,
            USUAL_RECORDS,
            lambda kernel: self._error_of(kernel, USUAL_RECORDS, promise, box),
        )

    @property
    def function_(self) -> NoisyTable:
        """The released function itself; only after the release."""
        table: NoisyTable = self._reading()
        return table
