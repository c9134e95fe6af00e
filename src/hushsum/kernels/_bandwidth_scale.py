"""What a bandwidth is measured in: the units of the data, or the declared range of each column."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Final

from hushsum.errors import Argument, SuspiciousParameter, UsageError, shown
from hushsum.records import Bounds

from ._base import ColumnKernel, Kernel
from ._expressions import ScaledKernel, scaled

UNITS, OF_BOUNDS = "units", "bounds"
SCALES: Final = (UNITS, OF_BOUNDS)
MOST_UNEQUAL: Final = 10.0
"""Columns whose declared ranges differ by more than this have different units, and no bandwidth in the units
of the data suits both.
"""
_NARROWEST: Final = 10_000


def in_scale(
    kernel: Kernel,
    scale: str | None,
    bounds: object,
    columns: Sequence[str] | None = None,
    *,
    default: bool = True,
) -> Kernel:
    """The kernel in the units of the data, whatever its bandwidth is measured in.

    Parameters
    ----------
    kernel : Kernel
        With the bandwidth as it was given.
    scale : {"units", "bounds", None}
        ``"bounds"``: the bandwidth is a fraction of the declared range of each column. None is that where the
        declared ranges of two columns differ by more than ten times, and ``"units"`` otherwise.
    bounds : declared bounds, optional
    columns : list of str, optional
        The names of the columns, for bounds by name.
    default : bool
        Whether None may mean ``"bounds"``. It does not for kernels whose factors state bandwidths of their
        own.

    Raises
    ------
    UsageError
        for a scale of another name, ``"bounds"`` without bounds, or a bandwidth above 1 that was not declared
        to be a fraction.

    Examples
    --------
    >>> from hushsum.kernels import GaussianKernel
    >>> near = in_scale(GaussianKernel(dim=2, bandwidth=0.1), None, [(0, 120), (0, 300_000)])
    >>> near.column_bandwidths()
    (12.0, 30000.0)
    >>> in_scale(GaussianKernel(dim=2, bandwidth=10.0), None, [(0, 120), (0, 250)])
    GaussianKernel(dim=2, bandwidth=10.0, power=1)
    """
    if scale is not None and scale not in SCALES:
        raise UsageError("scale", f"must be {' or '.join(SCALES)}", got=shown(scale))
    if scale == OF_BOUNDS:
        return scaled(kernel, bounds, columns)
    if scale == UNITS or not default or bounds is None or not isinstance(kernel, ColumnKernel):
        return kernel
    if isinstance(kernel, ScaledKernel) or kernel.dim == 1:
        return kernel
    box = Bounds.of(bounds, kernel.dim, columns)
    if box is None or not different_units(box):
        return kernel
    if kernel.bandwidth > math.sqrt(kernel.dim):
        raise UsageError(
            "bandwidth",
            "must be a fraction of the declared range of each column, because the ranges of "
            f"two columns differ by more than {MOST_UNEQUAL:g} times",
            got=f"{kernel.bandwidth:g}",
            remedy=("try 0.05, or give ", Argument("scale", UNITS), " for one in the units of the data"),
        )
    return scaled(kernel, box)


def in_units(
    kernel: Kernel, scale: str | None, bounds: object, columns: Sequence[str] | None = None
) -> tuple[float, ...]:
    """What one unit of the bandwidth is in each column, by the rules of :func:`in_scale`.

    >>> from hushsum.kernels import GaussianKernel
    >>> in_units(GaussianKernel(dim=2, bandwidth=1.0), "bounds", [(0, 120), (0, 4)])
    (120.0, 4.0)
    """
    if not isinstance(kernel, ColumnKernel):
        return (1.0,)
    one = in_scale(kernel, scale, bounds, columns)
    assert isinstance(one, ColumnKernel)
    return tuple(each / kernel.bandwidth for each in one.column_bandwidths())


def default_bandwidth(part: float, bounds: Bounds, scale: str | None) -> tuple[float, str | None]:
    """A bandwidth for declared bounds, and its scale: a part of the range of each column where their units
    differ, and otherwise of the widest range.

    >>> default_bandwidth(0.1, Bounds.of((0, 120), dim=2), None)
    (12.0, None)
    >>> default_bandwidth(0.1, Bounds.of([(0, 120), (0, 300_000)], dim=2), None)
    (0.1, 'bounds')
    """
    if scale == OF_BOUNDS or (scale is None and different_units(bounds)):
        return part, OF_BOUNDS
    return part * max(bounds.widths), scale


def different_units(bounds: Bounds) -> bool:
    """Whether the declared ranges of two columns differ so much that their units must differ.

    >>> different_units(Bounds.of([(0, 120), (0, 300_000)], dim=2))
    True
    """
    return max(bounds.widths) > MOST_UNEQUAL * min(bounds.widths)


def warn_of_bandwidth(
    kernel: Kernel, bounds: object, columns: Sequence[str] | None = None, *, level: int = 3
) -> None:
    """Warn of a bandwidth that does not suit the declared bounds, before anything is counted or debited.
    Everything that is looked at is public. ``level`` is as of ``warnings.warn``.
    """
    box = None if kernel.dim is None else Bounds.of(bounds, kernel.dim, columns)
    for sentence in bandwidth_warnings(kernel, box):
        warnings.warn(sentence, SuspiciousParameter, stacklevel=level + 1)


def bandwidth_warnings(kernel: Kernel, bounds: Bounds | None) -> list[str]:
    """What looks wrong about a bandwidth beside the declared bounds; all of it is public.

    >>> from hushsum.kernels import GaussianKernel
    >>> box = Bounds.of((0, 1), dim=1)
    >>> bandwidth_warnings(GaussianKernel(dim=1, bandwidth=0.05), box)
    []
    >>> bandwidth_warnings(GaussianKernel(dim=1, bandwidth=5.0), box)
    ['the bandwidth is larger than the declared range of every column: the function will be nearly constant.']
    """
    if bounds is None or not isinstance(kernel, ColumnKernel) or bounds.dim != kernel.dim:
        return []
    ratios = [each / side for each, side in zip(kernel.column_bandwidths(), bounds.widths, strict=True)]
    # Of d columns the diagonal of the box counts, which is √d times as long as a side.
    most = math.sqrt(kernel.dim)
    found = []
    if min(ratios) > most:
        found.append(
            "the bandwidth is larger than the declared range of every column: the function will be nearly "
            "constant."
        )
    elif max(ratios) > most:
        found.append(
            "the bandwidth is larger than the declared range of a column: the function will hardly depend on "
            'that column; scale="bounds" makes it a fraction of each range.'
        )
    if min(ratios) * _NARROWEST < 1.0:
        found.append(
            f"the bandwidth is below 1/{_NARROWEST} of the widest declared range: records are near each "
            "other by coincidence alone, and most answers will be noise."
        )
    return found
