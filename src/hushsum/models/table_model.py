"""Models that are made of one released table: modes, neighbours and samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.errors import UsageError
from hushsum.kernels.bandwidth_scale import in_scale
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.kernels.registry import HASH_ROWS, named, parameter_names
from hushsum.models.base import PrivateModel
from hushsum.models.density_tables import KERNELS, empty_table, table_method
from hushsum.models.parameters import FROM_PUBLIC, INTEGER, NUMBER, SCALE, TEXT, Parameter
from hushsum.models.predicted_error import (
    PLANNED,
    PredictedError,
    error_of_hash_rows,
    planned_error,
    share_of,
)
from hushsum.models.public_rows import USUAL_RECORDS, visible_bandwidth
from hushsum.privacy.claim import Promise
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.release_request import ReleaseRequest
from hushsum.releases.bundle import Bundle
from hushsum.releases.noisy_table import NoisyTable
from hushsum.tally.tally import Tally

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
KERNEL_PARAMETERS = (
    Parameter(
        "kernel",
        TEXT,
        "With a hash kernel the records are counted into hash rows, with the Gaussian one into a grid (up "
        "to four columns) or random features.",
        choices=KERNELS,
        kernel=True,
    ),
    Parameter(
        "bandwidth",
        NUMBER,
        "How near records must be to count as similar; chosen without looking at the records. See scale."
        + DENSITY_RULE,
        above=0,
        choices=(FROM_PUBLIC,),
    ),
    SCALE,
    POWER,
    ROWS,
    WIDTH,
)

PART = "sketch"
"""What the sketch is called in the bundle."""


def reach_of(kernel: Kernel, dim: int) -> Floats:
    """How far a step of the kernel is in each column: its bandwidth; half a radian for directions."""
    return np.array(kernel.column_bandwidths() if isinstance(kernel, ColumnKernel) else [0.5] * dim)


class TableModel(PrivateModel):
    """A model that counts its records into one tally, and releases that: hash rows for hash kernels, a grid
    for the Gaussian one in up to four columns, random features otherwise.

    A subclass has the parameters ``kernel``, ``bandwidth``, ``scale``, ``power``, ``rows`` and ``width``
    besides those of every model.

    Privacy
    -------
    The claim is that of the one table: everything else is computed from it.
    """

    kernel: Any
    bandwidth: float | str | None
    scale: str | None
    power: int
    rows: int
    width: int

    def _start(self, seed: int) -> Tally:
        return self._empty(seed)

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        if n_features is None or not promise.pure:
            return super()._mechanism(promise, n_features)
        return self._empty(0, n_features).prepare(ReleaseRequest(epsilon=self.epsilon)).claim.mechanism

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
        part = secret.release(epsilon=self.epsilon, delta=self.delta)
        return self._bundle(promise, parts={PART: part}, arrays=self._derived(part))

    def _derived(self, sketch: Any) -> dict[str, NDArray[Any]]:
        """What else the bundle holds, computed from the released sketch alone."""
        return {}

    def _part_columns(self) -> dict[str, int]:
        return {PART: self.n_features_in_}

    def _open(self, bundle: Bundle) -> NoisyTable:
        sketch = bundle.parts[PART]
        if not isinstance(sketch, NoisyTable):
            raise UsageError(
                rule="the model's part must be a released table", got="something else", remedy="fit it again"
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
        return planned_error(kernel, records, method, bounds=bounds, **share_of(promise, 1))

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
