"""Some cells of a tally, for a release that publishes only what was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Basis
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
from hushsum.tally.tally import Tally


def exact_cells(tally: Tally) -> Any:
    """The exact sums of a tally that counts records, for a private choice; secret."""
    if tally.max_per_unit is not None:
        raise UsageError(
            rule="a private choice among marginals protects records, and this tally counts persons",
            remedy="release all its marginals",
        )
    with tally._held():
        return tally._state()["table"]


def with_cells(tally: Tally, basis: Basis, kernel: Kernel, cells: NDArray[np.int64]) -> Tally:
    """A tally of the same records under a basis whose vector is these cells of the old one; secret."""
    with tally._held():
        state = tally._state()
        return Tally._restore(
            basis,
            kernel,
            state["table"][:, cells],
            state["count"],
            state["moves"],
            state["cap"],
            state["origins"],
            restricted=tally.add_remove_only,
        )
