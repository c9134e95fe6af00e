"""Expansions on boxes, engineered for the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hushsum.bases.box_polynomials import BoxPolynomials, degrees_of, number_of_degrees
from hushsum.bases.declared_box import DEFAULT_SCALE
from hushsum.bases.hermite_reading import read_energy, relative_square_error
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.kernels.registry import PRODUCT
from hushsum.methods.tally_methods import boxed_tally, register_tally
from hushsum.records.bounds import Bounds, DeclaredBounds
from hushsum.tally.tally import Tally

_WEIGHT_STEPS = 1 << 10
_ORDINARY = 0.012
_ORDERS = (0, 1, 2, 3, 4)
_SIDES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
_MOST_CELLS = 1 << 23


def hermite(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    order: int | None = None,
    side: float | None = None,
    records: int | None = None,
    epsilon: float | None = None,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of polynomials of each record's offset in its box: a fast Gauss transform; 1–4 columns.

    Offsets enter as Chebyshev's polynomials, in which what is cut off is about 2^order times smaller than in
    monomials; and each coefficient takes the share of the budget that minimises the noise of an answer.

    Parameters
    ----------
    kernel : Kernel
        Gaussian or Laplacian in any dimension; Euclidean or Manhattan in one. The released function answers
        other bandwidths too (``f.with_kernel``), best wider ones.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it.
    order : int, optional
        Highest degree, over all columns together. 0 is a histogram, which has the least noise.
    side : float, optional
        Of a box, in widths of the kernel. Wider boxes are fewer and need a higher order.
    records, epsilon : int and float, optional
        About how many records there will be, declared and not counted, and the ε to be released with: order
        and side are then chosen by :func:`predicted_error`. Without them order 2 and side 1.
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

    def basis(box: Bounds, names: tuple[str, ...] | None) -> BoxPolynomials:
        chosen = order, side
        if records is not None and epsilon is not None:
            chosen = _best_expansion(kernel, box, order, side, records * epsilon)
        degree = 2 if chosen[0] is None else chosen[0]
        width = (1.0 if chosen[1] is None else chosen[1]) * _width(kernel)
        return BoxPolynomials(
            bounds=box,
            columns=names,
            side=width,
            order=degree,
            weights=best_weights(kernel, width, degree),
        )

    return boxed_tally("hermite", kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit)


def predicted_error(
    kernel: Kernel, *, order: int, side: float, records: float, epsilon: float
) -> tuple[float, float]:
    """Of a mean kernel value under pure ε: the standard deviation of the noise, and the truncation error.

    The noise is what it will be. The truncation error is the root mean square one of the kernel times 0.012:
    what mean kernel values of ordinary data, and the averaging of errors of both signs, come to (measured on
    salaries and colours; a guess elsewhere).

    >>> import hushsum as hs
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=5000.0)
    >>> noise, truncation = predicted_error(kernel, order=3, side=1.4, records=21_000, epsilon=1.0)
    >>> round(noise, 5), round(truncation, 5)
    (0.00019, 2e-05)
    """
    dim, width = kernel.dim or 1, side * _width(kernel)
    degrees = degrees_of(dim, order, every_column=False)
    energy = read_energy(kernel, "chebyshev", width, order)
    weights = np.array(best_weights(kernel, width, order), np.float64)
    gain = np.array([np.prod([energy[power] for power in degree]) for degree in degrees]) / weights**2
    noise = math.sqrt(2.0 * gain.sum()) * weights.sum() / (records * epsilon)
    relative = relative_square_error(kernel, "chebyshev", width, order, degrees)
    return float(noise), _ORDINARY * math.sqrt(relative)


def _best_expansion(
    kernel: Kernel, bounds: Bounds, order: int | None, side: float | None, records_epsilon: float
) -> tuple[int, float]:
    """The smallest predicted error among expansions whose table is not too large."""
    dim, best, least = kernel.dim or 1, (2, 1.0), math.inf
    for each_order in _ORDERS if order is None else (order,):
        for each_side in _SIDES if side is None else (side,):
            width = each_side * _width(kernel)
            cells = number_of_degrees(dim, each_order, every_column=False)
            cells *= math.prod(math.ceil(2.0 * float(half) / width) for half in bounds.half_width)
            if cells > _MOST_CELLS:
                continue
            error = math.hypot(
                *predicted_error(
                    kernel, order=each_order, side=each_side, records=records_epsilon, epsilon=1.0
                )
            )
            if error < least:
                best, least = (each_order, each_side), error
    return best


def _width(kernel: Kernel) -> float:
    assert isinstance(kernel, ColumnKernel)
    return kernel.width


def best_weights(kernel: Kernel, side: float, order: int) -> tuple[int, ...]:
    """The integer weights of least noise, in steps so coarse that all machines find the same.

    >>> import hushsum as hs
    >>> best_weights(hs.GaussianKernel(dim=1, bandwidth=1.0), 1.0, 2)
    (65536, 32448, 9216)
    """
    energy = read_energy(kernel, "chebyshev", side, order)
    degrees = degrees_of(kernel.dim or 1, order, every_column=False)
    share = np.array([np.prod([energy[power] for power in degree]) for degree in degrees]) ** (1.0 / 3.0)
    steps = np.maximum(np.rint(share / share.max() * _WEIGHT_STEPS), 1.0).astype(np.int64)
    return tuple(int(step) * (DEFAULT_SCALE // _WEIGHT_STEPS) for step in steps)


register_tally(
    "hermite", hermite, role=PRODUCT, paper="Greengard and Strain 1991", most_columns=4, sized=True
)
