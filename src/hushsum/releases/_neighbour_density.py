"""The density by the distance to the k-th nearest record, read from one released grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushsum._types import Floats, is_number
from hushsum.errors import UsageError, shown
from hushsum.kernels import GaussianKernel, GaussianProfileKernel

from ._base import ReleasedFunction, query_points
from ._table_answers import CoefficientFunction

# From one width to the next.
_STEP: Final = math.sqrt(2.0)


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourDensity:
    """Densities at queries, and the widths of the windows that they were counted in, shape (n_queries,)."""

    value: Floats
    width: Floats


def neighbour_density(function: ReleasedFunction, Q: object, neighbours: float) -> NeighbourDensity:
    """The density at each query, in the narrowest Gaussian window that holds ``neighbours`` records.

    Where records are dense the window is narrow, where they are sparse it is wide: every density rests on
    about as many records, and none on noise alone if ``neighbours`` is well above the noise of a kernel sum.
    Widths are those of the function's kernel times powers of √2, so a density is blurred by less than one
    such step more than needed. For one to four columns, where a grid can be released.

    Parameters
    ----------
    function : ReleasedFunction
        A release of a grid with a Gaussian kernel, whose bandwidth is the narrowest window.
    Q : array-like of shape (n_queries, dim)
    neighbours : float
        k: how many records a window holds, each weighted by exp(−r²/(2·width²)).

    Privacy
    -------
    Post-processing of one release, read with several kernels: nothing is spent. The distance to the k-th
    nearest record itself has no bounded sensitivity; see *Neighbours, optimisation and steps*.

    Examples
    --------
    >>> import numpy as np
    >>> import hushsum as hs
    >>> X = np.random.default_rng(0).normal(size=(20_000, 1))
    >>> f = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.05), bounds=(-6, 6)).add(X).release(epsilon=1.0)
    >>> found = hs.releases.neighbour_density(f, [[0.0], [3.0]], neighbours=500)
    >>> found.value.round(1).tolist(), bool(found.width[1] > found.width[0])
    ([0.4, 0.0], True)
    """
    kernel = function.kernel
    if not isinstance(function, CoefficientFunction) or not isinstance(kernel, GaussianProfileKernel):
        raise UsageError(
            "function",
            "must be a release of a grid with a Gaussian kernel",
            got=f"a {type(function).__name__} with a {kernel.name} kernel",
            remedy="make one with hs.grid(hs.GaussianKernel(…))",
        )
    if not is_number(neighbours) or not 0.0 < neighbours < math.inf:
        raise UsageError("neighbours", "must be above 0", got=shown(neighbours), remedy="try 100")
    queries = query_points(Q, dim=function.dim, columns=function.columns)
    assert isinstance(queries, np.ndarray)
    narrowest = kernel.gaussian_width()
    box = function.bounds
    longest = max([narrowest, *(() if box is None else box.widths)])
    steps = math.ceil(math.log(longest / narrowest, _STEP))
    widths = [narrowest * _STEP**step for step in range(steps + 1)]
    windows = [GaussianKernel(dim=kernel.dim, bandwidth=width) for width in widths]
    sums = np.stack([function.with_kernel(each).sum(queries) for each in windows])
    reached = sums >= neighbours
    # Where no window holds as many, the widest: reached is then all False, and argmax would be the first.
    chosen = np.where(reached.any(axis=0), reached.argmax(axis=0), len(widths) - 1)
    width = np.array(widths)[chosen]
    volume = (math.sqrt(2.0 * math.pi) * width) ** kernel.dim
    value = np.maximum(sums[chosen, np.arange(len(queries))], 0.0) / (max(function.count, 1.0) * volume)
    return NeighbourDensity(value, width)
