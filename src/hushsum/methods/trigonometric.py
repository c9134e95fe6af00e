"""Trigonometric polynomials as a method."""

from __future__ import annotations

from collections.abc import Sequence

from hushsum.bases.trigonometric import TrigonometricPolynomials
from hushsum.kernels.base import Kernel
from hushsum.kernels.registry import PRODUCT
from hushsum.methods.tally_methods import boxed_tally, register_tally
from hushsum.records.bounds import Bounds, DeclaredBounds
from hushsum.tally.tally import Tally


def trigonometric(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
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
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
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

    def basis(box: Bounds, names: tuple[str, ...] | None) -> TrigonometricPolynomials:
        return TrigonometricPolynomials(bounds=box, columns=names, terms=terms)

    return boxed_tally(
        "trigonometric", kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit
    )


register_tally("trigonometric", trigonometric, role=PRODUCT, paper="Wang et al. 2016", most_columns=3)
