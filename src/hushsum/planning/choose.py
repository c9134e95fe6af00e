"""From records to a released function in one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushsum.errors import DataRefused, UsageError
from hushsum.kernels.base import Kernel, kernel_class
from hushsum.methods.race import DEFAULT_WIDTH, race
from hushsum.privacy.relation import Relation
from hushsum.releases.base import ReleasedFunction

_CAPACITY = 2000
"""Rows to count. Under pure ε the paid count decides how many are published; with δ all are."""


def release(
    X: object,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    bandwidth: float | None = None,
    kernel: str | Kernel = "euclidean",
    bounds: Sequence[tuple[float, float]] | tuple[float, float] | None = None,
    rows: int | str = "auto",
    width: int = DEFAULT_WIDTH,
    seed: int = 0,
    relation: str | Relation = Relation.ADD_REMOVE,
    threads: int | None = None,
) -> ReleasedFunction:
    """Count records and release them, with the sizes chosen for you. Spends the claim.

    The number of records is never used but through a paid noisy count; the number of columns is taken as
    public.

    Parameters
    ----------
    X : records
        Private. For several batches, sites or persons make a tally with :func:`hushsum.race`.
    epsilon, delta, rho, relation, rows
        As for ``Tally.release``.
    bandwidth : float
        The scale of the kernel, in the units of the data, chosen without looking at them.
    kernel : str or Kernel
        A name, or a kernel object, which then brings its own bandwidth.
    bounds : list of (low, high), optional
        Declared; records are clipped to it.

    Examples
    --------
    >>> import hushsum as hs
    >>> f = hs.release([[1.0], [2.0], [2.5]] * 500, epsilon=1.0, bandwidth=1.0)
    >>> f.claim.relation.value
    'add/remove'
    """
    chosen = kernel if isinstance(kernel, Kernel) else _named(kernel, X, bandwidth)
    capacity = _CAPACITY if isinstance(rows, str) else rows
    tally = race(chosen, rows=capacity, width=width, seed=seed, bounds=bounds)
    tally.add(X, threads=threads)
    return tally.release(epsilon=epsilon, delta=delta, rho=rho, relation=relation, rows=rows, threads=threads)


def _named(name: str, X: object, bandwidth: float | None) -> Kernel:
    fields = getattr(kernel_class(name), "__dataclass_fields__", {})
    arguments: dict[str, float | int] = {}
    if "dim" in fields:
        arguments["dim"] = _columns(X)
    if "bandwidth" in fields:
        if bandwidth is None:
            raise UsageError(
                f"bandwidth must be given for the {name} kernel; choose it without looking at the data"
            )
        arguments["bandwidth"] = bandwidth
    elif bandwidth is not None:
        raise UsageError(f"the {name} kernel has no bandwidth; leave it out")
    return kernel_class(name)(**arguments)


def _columns(X: object) -> int:
    shape = getattr(X, "shape", None)
    if shape is None:
        try:
            shape = np.asarray(X).shape
        except ValueError:
            shape = None
    # Refused out here: NumPy's own message tells the number of records.
    if shape is None or len(shape) not in (1, 2):
        raise DataRefused("records must be rows of one length; pass an array or a frame of two dimensions")
    if len(shape) == 1:
        return 1
    if shape[1] > shape[0]:
        raise DataRefused(
            "the number of columns is taken as public, got more columns than records; "
            "turn the table, or give a kernel with its dim"
        )
    return int(shape[1])
