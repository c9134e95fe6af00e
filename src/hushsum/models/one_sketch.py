"""Models that are made of one released table."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hushsum.errors import UsageError, shown
from hushsum.kernels.base import (
    ColumnKernel,
    GaussianProfileKernel,
    HashableKernel,
    Kernel,
    kernel_names,
    named,
    parameter_names,
)
from hushsum.methods.fourier_features import fourier_features
from hushsum.methods.grid import grid
from hushsum.methods.race import race
from hushsum.models.base import Floats, PrivateModel
from hushsum.models.density_plan import MOST_GRID_COLUMNS
from hushsum.privacy.claim import Promise
from hushsum.releases.bundle import Bundle
from hushsum.releases.noisy_table import NoisyTable
from hushsum.tally.tally import Tally

PART = "sketch"
"""What the sketch is called in the bundle."""


class OneSketch(PrivateModel):
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
        if isinstance(kernel, HashableKernel):
            bounds = self._box() if isinstance(kernel, ColumnKernel) else None
            return race(kernel, rows=self.rows, width=self.width, seed=seed, bounds=bounds)
        if isinstance(kernel, GaussianProfileKernel) and self.n_features_in_ <= MOST_GRID_COLUMNS:
            return grid(kernel, bounds=self._box())
        return fourier_features(kernel, seed=seed, bounds=self._box())

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
            raise UsageError("the model's part must be a released table, got something else; fit it again")
        return sketch

    def _kernel(self) -> Kernel:
        """The kernel by its name, or as it was given."""
        if isinstance(self.kernel, Kernel):
            return self.kernel
        known = [name for name in kernel_names() if "dim" in parameter_names(name)]
        if self.kernel not in known:
            raise UsageError(
                f"kernel must be one of {', '.join(known)}, or a kernel of that many columns, "
                f"got {shown(self.kernel)}; choose one"
            )
        given = {"bandwidth": self.bandwidth, "power": self.power}
        taken: dict[str, Any] = {
            name: value for name, value in given.items() if name in parameter_names(self.kernel)
        }
        return named(self.kernel, dim=self.n_features_in_, **taken)

    @property
    def function_(self) -> NoisyTable:
        """The released function itself; only after the release."""
        return self._open(self.released_)
