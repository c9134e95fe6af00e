"""Expansions on boxes, engineered for the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hushsum.bases.box_polynomials import BoxPolynomials, degrees_of
from hushsum.bases.declared_box import DEFAULT_SCALE
from hushsum.bases.hermite_reading import read_energy
from hushsum.kernels.base import Kernel
from hushsum.records.bounds import Bounds
from hushsum.tally.tally import Tally

_WEIGHT_STEPS = 1 << 10


def hermite(
    kernel: Kernel,
    *,
    bounds: Sequence[tuple[float, float]] | tuple[float, float],
    order: int = 2,
    side: float = 1.0,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of polynomials of each record's offset in its box: a fast Gauss transform; 1–4 columns.

    Offsets enter as Chebyshev's polynomials, in which what is cut off is about 2^order times smaller than in
    monomials; and each coefficient takes the share of the budget that minimises the noise of an answer.

    Parameters
    ----------
    kernel : Kernel
        Gaussian in any dimension; Euclidean or Manhattan in one. The released function answers other
        bandwidths too (``f.with_kernel``), best wider ones.
    bounds : list of (low, high), or one (low, high) for all columns
        Declared, never read off the data. Records are clipped to it.
    order : int
        Highest degree, over all columns together. 0 is a histogram, which has the least noise.
    side : float
        Of a box, in bandwidths. Wider boxes are fewer and need a higher order.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.methods import hermite
    >>> tally = hermite(hs.GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 10))
    >>> f = tally.add([[2.0]] * 1000).release(epsilon=1.0)
    >>> bool(abs(f([[2.0]])[0] - 1.0) < 0.1)
    True

    Notes
    -----
    After Greengard and Strain, *The fast Gauss transform*, SIAM J. Sci. Stat. Comput. 1991. Noise of variance
    (Δ1/ε)² in each of the cells w_α·c_α adds Σ_α e_α/w_α² to an answer, e_α = Σ over boxes of the squared
    reading, with Δ1 = Σw; least at w_α ∝ e_α^(1/3).
    """
    dim = int(getattr(kernel, "dim", 1))
    bandwidth = float(getattr(kernel, "bandwidth", 1.0)) / math.sqrt(getattr(kernel, "power", 1))
    width = side * bandwidth
    basis = BoxPolynomials(
        kernel=kernel,
        bounds=Bounds.declared(bounds, dim, "hermite"),
        columns=None if columns is None else tuple(columns),
        side=width,
        order=order,
        weights=best_weights(kernel, width, order),
    )
    return Tally(basis, max_per_unit=max_per_unit)


def best_weights(kernel: Kernel, side: float, order: int) -> tuple[int, ...]:
    """The integer weights of least noise, in steps so coarse that all machines find the same.

    >>> import hushsum as hs
    >>> best_weights(hs.GaussianKernel(dim=1, bandwidth=1.0), 1.0, 2)
    (65536, 32448, 9216)
    """
    energy = read_energy(kernel, "chebyshev", side, order)
    degrees = degrees_of(int(getattr(kernel, "dim", 1)), order, every_column=False)
    share = np.array([np.prod([energy[power] for power in degree]) for degree in degrees]) ** (1.0 / 3.0)
    steps = np.maximum(np.rint(share / share.max() * _WEIGHT_STEPS), 1.0).astype(np.int64)
    return tuple(int(step) * (DEFAULT_SCALE // _WEIGHT_STEPS) for step in steps)
