"""Models that are made of one released table: modes, neighbours and samples."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
from hushsum.kernels.registry import HASH_ROWS, named, parameter_names
from hushsum.models.base import PrivateModel
from hushsum.models.density_tables import KERNELS, empty_table, table_method
from hushsum.models.parameters import INTEGER, NUMBER, TEXT, Parameter
from hushsum.models.predicted_error import (
    PLANNED,
    PredictedError,
    error_of_hash_rows,
    planned_error,
    share_of,
)
from hushsum.privacy.claim import Promise
from hushsum.releases.bundle import Bundle
from hushsum.releases.noisy_table import NoisyTable
from hushsum.tally.tally import Tally

NEAR = Parameter(
    "bandwidth",
    NUMBER,
    "Scale of the kernel: what near means. Public, chosen without looking at the records.",
    above=0,
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
        "Scale of the kernel; chosen without looking at the records.",
        above=0,
    ),
    POWER,
    ROWS,
    WIDTH,
)

PART = "sketch"
"""What the sketch is called in the bundle."""


class TableModel(PrivateModel):
    """A model that counts its records into one tally, and releases that: hash rows for hash kernels, a grid
    for the Gaussian one in up to four columns, random features otherwise.

    A subclass has the parameters ``kernel``, ``bandwidth``, ``power``, ``rows`` and ``width`` besides those
    of every model.

    Privacy
    -------
    The claim is that of the one table: everything else is computed from it.
    """

    kernel: Any
    bandwidth: float
    power: int
    rows: int
    width: int

    def _start(self, seed: int) -> Tally:
        kernel = self._kernel()
        return empty_table(
            kernel,
            table_method(kernel, self.n_features_in_),
            box=self.column_bounds(),
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

    def _open(self, bundle: Bundle) -> NoisyTable:
        sketch = bundle.parts[PART]
        if not isinstance(sketch, NoisyTable):
            raise UsageError(
                rule="the model's part must be a released table", got="something else", remedy="fit it again"
            )
        return sketch

    def _kernel(self, n_features: int | None = None) -> Kernel:
        """The kernel by its name, or as it was given."""
        if isinstance(self.kernel, Kernel):
            return self.kernel
        given = {"bandwidth": self.bandwidth, "power": self.power}
        taken: dict[str, Any] = {
            name: value for name, value in given.items() if name in parameter_names(self.kernel)
        }
        return named(self.kernel, dim=self._width(n_features), **taken)

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        kernel, bounds = self._kernel(n_features), self.column_bounds(n_features)
        if HASH_ROWS.test(kernel):
            error = error_of_hash_rows(
                kernel, records, promise, bounds=bounds, rows=self.rows, width=self.width
            )
        else:
            error = planned_error(
                kernel, records, table_method(kernel, n_features), bounds=bounds, **share_of(promise, 1)
            )
        return PredictedError("mean kernel value", error, records, PLANNED)

    @property
    def function_(self) -> NoisyTable:
        """The released function itself; only after the release."""
        return self._open(self.released_)
