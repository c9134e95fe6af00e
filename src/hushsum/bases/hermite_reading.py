"""How polynomials of a record in its box are turned into the kernel at a query."""

from __future__ import annotations

import math

import numpy as np

from hushsum._types import Floats
from hushsum.bases.chebyshev import chebyshev_coefficients, chebyshev_values, column_profile
from hushsum.bases.declared_box import gaussian_width
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.kernels.parameters import one_of

MONOMIALS = "monomials"
FAMILIES = ("chebyshev", MONOMIALS)
_NODES = 48
_SPAN = 6.0
_STEPS = 24
"""Places a bandwidth, or a box, where errors are averaged."""


def check_family(polynomials: str) -> None:
    """Refuse an unknown family."""
    one_of("polynomials", polynomials, FAMILIES)


def box_readings(kernel: Kernel, polynomials: str, side: float, order: int, away: Floats) -> Floats:
    """Coefficients in one column of t ↦ k(centre + t·side/2, q), with q ``away`` from the centre.

    Shape (*away.shape, order + 1). In monomials these are Hermite functions,
    ``k(z − y) = Σ (y^j/j!)·h_j(z)``, z and y in units of √2 bandwidths. In Chebyshev's polynomials they are
    combinations of all of them, about 2^j times smaller at degree j, and so is what is cut off.
    """
    if polynomials == "chebyshev":
        nodes = max(_NODES, 2 * order + 2)
        return chebyshev_coefficients(column_profile(kernel, "hermite"), 0.5 * side, away, order, nodes)
    width = math.sqrt(2.0) * gaussian_width(kernel, "the expansion in monomials")
    z, ratio = away / width, 0.5 * side / width
    # Hermite functions by their recurrence, with the factorials and powers of the half side taken along.
    functions = [np.exp(-z * z)]
    if order:
        functions.append(2.0 * ratio * z * functions[0])
    for j in range(2, order + 1):
        functions.append((2.0 * ratio / j) * (z * functions[-1] - ratio * functions[-2]))
    return np.stack(functions, axis=-1)


def relative_square_error(
    kernel: Kernel, polynomials: str, side: float, order: int, degrees: list[tuple[int, ...]]
) -> float:
    """∫(k − its expansion)²/∫k² over all places of record and query.

    Every term is a product over columns, so moments of one column suffice.
    """
    assert isinstance(kernel, ColumnKernel)
    width = kernel.width
    offsets: Floats = (np.arange(_STEPS, dtype=np.float64) + 0.5) * (2.0 / _STEPS) - 1.0
    steps = int(2 * (_SPAN * width + 0.5 * side) / width * _STEPS)
    away = (np.arange(steps) / (steps - 1) * 2.0 - 1.0) * (_SPAN * width + 0.5 * side)
    true = column_profile(kernel, "hermite")(np.subtract.outer(0.5 * side * offsets, away))
    values = _family(polynomials, offsets, order)
    readings = box_readings(kernel, polynomials, side, order, away)
    terms = values[:, :, np.newaxis] * readings.T[:, np.newaxis, :]
    energy = float((true * true).mean())
    cross = (terms * true).mean(axis=(1, 2))
    pairs = np.einsum("ixy,jxy->ij", terms, terms) / true.size
    dim = len(degrees[0])
    index = np.array(degrees)
    crossed = cross[index].prod(axis=1).sum()
    product = np.ones((len(degrees), len(degrees)))
    for column in range(dim):
        product *= pairs[index[:, column]][:, index[:, column]]
    return max(0.0, float(1.0 - (2.0 * crossed - product.sum()) / energy**dim))


def read_energy(kernel: Kernel, polynomials: str, side: float, order: int) -> Floats:
    """Σ over boxes of a reading's square, averaged over queries, for each degree in one column."""
    assert isinstance(kernel, ColumnKernel)
    width = kernel.width
    step = min(width, side) / _STEPS
    reach = _SPAN * width + 0.5 * side
    away = np.arange(-reach, reach, step)
    readings = box_readings(kernel, polynomials, side, order, away)
    return np.asarray((readings * readings).sum(axis=0) * (step / side))


def _family(polynomials: str, offsets: Floats, order: int) -> Floats:
    if polynomials == "chebyshev":
        return chebyshev_values(offsets, order)
    return np.asarray(offsets[np.newaxis, :] ** np.arange(order + 1)[:, np.newaxis])
