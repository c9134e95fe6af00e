"""Products over columns: every coefficient of a record, or of a query, is one factor of each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats

Complexes = NDArray[np.complex128]
Numbers = TypeVar("Numbers", Floats, Complexes)


def outer_products(factors: Sequence[Floats]) -> Floats:
    """From one (n, terms) array a column to all products, shape (n, terms^dim), last column fastest.

    Elementwise: a row depends on that row alone, bit for bit.

    >>> outer_products([np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])]).tolist()
    [[3.0, 5.0, 6.0, 10.0]]
    """
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, :, np.newaxis] * factor[:, np.newaxis, :]).reshape(len(product), -1)
    return product


def contracted(coefficients: Numbers, factors: Sequence[Numbers]) -> Numbers:
    """Σ over all products of one factor per column times its coefficient, shape (n,).

    ``coefficients`` is flat, with the last column fastest. For queries: the order of summation is free.
    """
    dims = [factor.shape[1] for factor in factors]
    rest = coefficients.reshape(*dims[:-1], dims[-1])
    partial = np.tensordot(factors[-1], rest, axes=(1, len(dims) - 1))
    for factor in reversed(factors[:-1]):
        partial = np.einsum("n...k,nk->n...", partial, factor)
    return partial
