"""Models of one released table: which table counts a kernel, and the parameters that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from hushsum import kernels
from hushsum._types import Box, Floats
from hushsum.declaration import FROM_PUBLIC, INTEGER, NUMBER, TEXT, Parameter, setting
from hushsum.errors import UsageError
from hushsum.kernels import ColumnKernel, Kernel, Role
from hushsum.methods import FOURIER_FEATURES, GRID, RACE, method_named
from hushsum.privacy import Mechanism, Promise, ReleaseRequest
from hushsum.releases import Bundle, NoisyTable
from hushsum.tally import Tally

from ._accuracy import PLANNED, PredictedError, part_of, planned_error, terms_of
from ._base import SCALE, Drawn, PrivateModel, declared, require
from ._public_rows import USUAL_RECORDS, visible_bandwidth

KERNELS = tuple(
    name
    for name in kernels.kernel_names()
    if "dim" in kernels.parameter_names(name)
    and name in {*kernels.HASHABLE.kernels(), *kernels.SPECTRAL.kernels()}
)
"""The kernels of columns that hash rows or random features count, by name."""
MOST_GRID_COLUMNS = 4
TABLES: tuple[tuple[Role, int | None, str], ...] = (
    (kernels.HASH_ROWS, None, RACE),
    (kernels.SMOOTH_PROFILES, MOST_GRID_COLUMNS, GRID),
    (kernels.SPECTRAL, None, FOURIER_FEATURES),
)
"""Where a model counts a kernel: the first method whose role it has, in at most that number of columns."""


def empty_table(
    kernel: Kernel, method: str, *, box: Box | None, columns: Sequence[str] | None = None, **sizes: int
) -> Tally:
    """An empty tally of a method. Of the given sizes, the method uses those that it takes."""
    counting = method_named(method)
    assert counting.tally is not None
    taken = {name: value for name, value in sizes.items() if name in counting.settings}
    bounds = box if isinstance(kernel, ColumnKernel) else None
    return counting.tally(kernel, bounds=bounds, columns=columns, **taken)


def table_method(kernel: Kernel, dim: int) -> str:
    """Hash rows for hash kernels, a grid for Gaussian ones in few columns, random features otherwise."""
    found = (name for role, most, name in TABLES if role.test(kernel) and (most is None or dim <= most))
    return next(found, FOURIER_FEATURES)


def spread_points(low: Floats, high: Floats, number: int, seed: int) -> Floats:
    """Public points that fill a box evenly, shape (number, dim)."""
    from scipy.stats import qmc

    power = max(1, int(np.ceil(np.log2(max(number, 2)))))
    unit = qmc.Sobol(len(low), scramble=True, rng=np.random.default_rng(seed)).random_base2(power)
    return np.asarray(low + (high - low) * unit[:number], np.float64)


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
_FEWER_ROWS: Final = (12, 25, 50, 100, 200, 400, 800, 1600)
POWER = Parameter("power", help="The kernel to that power, which falls off faster.", at_least=1)
KERNEL = Parameter(
    "kernel",
    TEXT,
    "With a hash kernel the records are counted into hash rows, with the Gaussian one into a grid (up to "
    "four columns) or random features.",
    choices=KERNELS,
    kernel=True,
)

PART = "sketch"
"""What the sketch is called in the bundle."""


def kernel_of(model: Any, n_features: int | None = None, bandwidth: float | None = None) -> Kernel:
    """The kernel that a model is declared with, by its name or as it was given, in the units of the data.

    Parameters
    ----------
    model : PrivateModel
        With ``bandwidth`` and ``scale``; with ``kernel``, or the Euclidean one is meant; and with those
        parameters of the kernel that it leaves to users.
    n_features : int, optional
        How many columns the records will have; needed before any are counted.
    bandwidth : float, optional
        In place of the declared one.
    """
    kernel, dim = getattr(model, "kernel", "euclidean"), model._width(n_features)
    scale, box = model.effective("scale", n_features), model.column_bounds(n_features)
    if isinstance(kernel, Kernel):
        if kernel.dim not in (None, dim):
            raise UsageError(
                "kernel", f"must compare {dim} columns", got="another number", remedy=f"give it dim={dim}"
            )
        return kernels.in_scale(kernel, scale, box, default=False)
    used = model.effective("bandwidth", n_features) if bandwidth is None else bandwidth
    given = {"dim": dim, "bandwidth": used}
    given |= {name: getattr(model, name) for name in ("power", "smoothness") if hasattr(model, name)}
    taken: dict[str, Any] = {name: given[name] for name in kernels.parameter_names(kernel) if name in given}
    return kernels.in_scale(kernels.named(kernel, **taken), scale, box)


@declared
class KernelModel(PrivateModel):
    """A model that compares records by a kernel, whose sums it counts into tables."""

    bandwidth: Any = setting(None, NEAR, help=NEAR.help + DENSITY_RULE, choices=(FROM_PUBLIC,))
    scale: str | None = setting(None, SCALE)
    power: int = setting(2, POWER)
    rows: Any = setting(
        1000,
        "Rows of the table; a release with pure ε publishes the number with the least error.",
        at_least=1,
        type=INTEGER,
    )
    width: int = setting(1000, "Cells of a row.", at_least=2)

    def _kernel(self, n_features: int | None = None, bandwidth: float | None = None) -> Kernel:
        """The kernel; with another bandwidth, if there is one."""
        return kernel_of(self, n_features, bandwidth)

    def _rows(self, promise: Promise) -> int:
        """The hash rows that are counted."""
        return int(self.rows)

    def _table_method(self, kernel: Kernel) -> str:
        """What the records are counted into for a kernel."""
        return table_method(kernel, kernel.dim or 1)

    def _empty(self, seed: int, n_features: int | None = None) -> Tally:
        kernel = self._kernel(n_features)
        sizes = {"rows": self._rows(self._promise()), "width": self.width, "seed": seed}
        box, columns = self.column_bounds(n_features), self._table_columns()
        return empty_table(kernel, self._table_method(kernel), box=box, columns=columns, **sizes)

    def _error_of(self, kernel: Kernel, records: int, promise: Promise, bounds: Box | None) -> float:
        """The predicted error of the mean of a kernel."""
        method, sizes = self._table_method(kernel), terms_of(promise)
        if method == RACE:
            # A release with pure ε publishes as many hash rows as suit it.
            rows = self._rows(promise)
            sizes["rows"] = [*(each for each in _FEWER_ROWS if promise.pure and each < rows), rows]
            sizes["width"] = self.width
        return planned_error(kernel, records, method, bounds=bounds, **sizes)

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The one kernel."""
        return [self._kernel(n_features)]

    def _public_bandwidth(self, rows: Floats, promise: Promise) -> float:
        dim, box = rows.shape[1], self.column_bounds(rows.shape[1])
        return visible_bandwidth(
            lambda bandwidth: self._kernel(dim, bandwidth),
            rows,
            USUAL_RECORDS,
            lambda kernel: self._error_of(kernel, USUAL_RECORDS, promise, box),
        )


@declared
class TalliesModel(PrivateModel):
    """A model that counts its records into tallies, and releases each for an equal part of the budget."""

    def _tallies(self, seed: int, n_features: int | None = None) -> dict[str, Any]:
        """The empty tallies by the names of the parts."""
        raise NotImplementedError

    def _terms(self, promise: Promise, parts: int) -> dict[str, Any]:
        """What each is released for: the parts count the same records, so they share the promise."""
        return terms_of(part_of(promise, Fraction(1, parts)))

    def _start(self, seed: int) -> dict[str, Any]:
        return self._tallies(seed)

    def _count(self, secret: dict[str, Any], X: Floats, y: Any) -> None:
        for tally in secret.values():
            tally.add(X)

    def _draw(self, secret: dict[str, Any], promise: Promise) -> Drawn:
        terms = self._terms(promise, len(secret))
        return Drawn({name: tally.release(**terms) for name, tally in secret.items()})

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        if n_features is None or not promise.pure:
            return super()._mechanism(promise, n_features)
        empty = self._tallies(0, n_features)
        request = ReleaseRequest(**self._terms(promise, len(empty)))
        each: list[Mechanism] = [tally.prepare(request).claim.mechanism for tally in empty.values()]
        return reduce(add, each)


@declared
class TableModel(TalliesModel, KernelModel):
    """A model that counts its records into one tally, and releases that: hash rows for hash kernels, a grid
    for the Gaussian one in up to four columns, random features otherwise.

    A subclass has the parameters ``kernel``, ``bandwidth``, ``scale``, ``power``, ``rows`` and ``width``
    besides those of every model.

    Privacy
    -------
    The claim is that of the one table: everything else is computed from it.
    """

    kernel: Any = setting("gaussian", KERNEL)

    def _tallies(self, seed: int, n_features: int | None = None) -> dict[str, Tally]:
        return {PART: self._empty(seed, n_features)}

    def _draw(self, secret: dict[str, Tally], promise: Promise) -> Drawn:
        drawn = super()._draw(secret, promise)
        return replace(drawn, arrays=self._derived(drawn.parts[PART]))

    def _derived(self, sketch: Any) -> dict[str, NDArray[Any]]:
        """What else the bundle holds, computed from the released sketch alone."""
        return {}

    def _part_columns(self) -> dict[str, int]:
        return {PART: self.n_features_in_}

    def _open(self, bundle: Bundle) -> NoisyTable:
        sketch = bundle.parts[PART]
        require(isinstance(sketch, NoisyTable), "part")
        return cast(NoisyTable, sketch)

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        kernel, bounds = self._kernel(n_features), self.column_bounds(n_features)
        error = self._error_of(kernel, records, promise, bounds)
        return PredictedError("mean kernel value", error, records, PLANNED)

    @property
    def function_(self) -> NoisyTable:
        """The released function itself; only after the release."""
        table: NoisyTable = self._reading()
        return table
