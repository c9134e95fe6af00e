"""Trigonometric polynomials as a method."""

from __future__ import annotations

from collections.abc import Sequence

from hushsum.bases.trigonometric import TrigonometricPolynomials
from hushsum.kernels.base import Kernel
from hushsum.methods.linear import register_tally
from hushsum.records.bounds import Bounds
from hushsum.tally.tally import Tally


def trigonometric(
    kernel: Kernel,
    *,
    bounds: Sequence[tuple[float, float]] | tuple[float, float],
    terms: int = 16,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of trigonometric polynomials, from which every smooth query on the box is read.

    The released function answers other kernels and bandwidths too (``f.with_kernel``), as far as so few terms
    can follow them. For one to three columns and wide kernels.

    Parameters
    ----------
    kernel : Kernel
        Gaussian or Laplacian in any dimension; Euclidean or Manhattan in one.
    bounds : list of (low, high), or one (low, high) for all columns
        Declared, never read off the data. Records are clipped to it.
    terms : int
        In each column; terms^dim coefficients share the budget.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.methods import trigonometric
    >>> tally = trigonometric(hs.GaussianKernel(dim=1, bandwidth=2.0), bounds=(0, 10), terms=8)
    >>> f = tally.add([[2.0]] * 1000).release(epsilon=1.0)
    >>> bool(f([[2.0]])[0] > f.with_kernel(hs.GaussianKernel(dim=1, bandwidth=3.0))([[9.0]])[0])
    True

    Notes
    -----
    Wang et al., *Differentially private data releasing for smooth queries*, JMLR 2016. With exact integer
    noise on coefficients in fixed point.
    """
    dim = int(getattr(kernel, "dim", 1))
    basis = TrigonometricPolynomials(
        kernel=kernel,
        bounds=Bounds.declared(bounds, dim, "trigonometric"),
        columns=None if columns is None else tuple(columns),
        terms=terms,
    )
    return Tally(basis, max_per_unit=max_per_unit)


register_tally(
    "trigonometric", trigonometric, paper="Wang et al. 2016", kernels=("gaussian",), most_columns=3
)
