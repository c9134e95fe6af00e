"""The spectral estimate as a method."""

from __future__ import annotations

from collections.abc import Sequence

from hushsum.kernels import GAUSSIAN, Kernel
from hushsum.methods import boxed_tally, register_tally
from hushsum.records import Bounds, DeclaredBounds
from hushsum.tables import FourierSeries
from hushsum.tally import Tally

LAPLACE_TAPER = 2.0 / 3.0
PUBLISHED = (1, 2, 4, 5, 10)
"""Frequencies of the 2, 4, 8, 10 and 20 basis functions that Coleman and Shrivastava tried."""


def fourier_series(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    frequencies: int = 10,
    padding: float = 4.0,
    tapered: bool = False,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of Fourier coefficients on a box: the orthogonal series, or spectral, estimate.

    For one to three columns and bandwidths that are a good part of the box: narrow peaks need as many
    frequencies as the box has bandwidths, and pure ε pays for each.

    Parameters
    ----------
    kernel : GaussianKernel
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it.
    frequencies : int
        The highest frequency in each column.
    padding : float
        Bandwidths that keep one end of the box from being felt at the other, the series being periodic.
    tapered : bool
        Divide the budget among the coefficients by what they matter to an answer. The published method
        divides equally.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import fourier_series
    >>> tally = fourier_series(hs.GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 10), frequencies=8)
    >>> f = tally.add([[2.0]] * 500 + [[7.0]] * 500).release(epsilon=1.0)
    >>> bool(f([[2.0]])[0] > f([[4.5]])[0])
    True

    Notes
    -----
    Hall, Rinaldo and Wasserman, JMLR 2013; Wasserman and Zhou, JASA 2010. With exact integer noise on
    coefficients in fixed point.
    """

    def basis(box: Bounds, names: tuple[str, ...] | None) -> FourierSeries:
        return FourierSeries(
            kernel=kernel,
            bounds=box,
            columns=names,
            frequencies=frequencies,
            padding=padding,
            taper=LAPLACE_TAPER if tapered else 0.0,
        )

    return boxed_tally(
        "fourier_series", kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit
    )


register_tally(
    "fourier_series",
    fourier_series,
    role=GAUSSIAN,
    paper="Hall, Rinaldo and Wasserman 2013",
    most_columns=3,
)
