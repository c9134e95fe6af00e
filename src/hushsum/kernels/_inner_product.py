"""Inner products of vectors in a ball, and their squares: kernels for embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError, shown
from hushsum.kernels._base import Batch, InnerProductKernel
from hushsum.kernels._parameter_checks import check_parameters
from hushsum.kernels._registry import register
from hushsum.records import clipped_to_ball


def _products(records: Batch, queries: Batch, radius: float) -> Floats:
    """x·q/radius², with records clipped to the radius."""
    clipped = clipped_to_ball(records.arrays[0].astype(np.float64), radius)
    products: Floats = clipped @ queries.arrays[0].astype(np.float64).T / radius**2
    return products


@register
@dataclass(frozen=True, slots=True)
class DotProductKernel(InnerProductKernel):
    """``x·q/radius²``: its mean at q is the inner product of q and the mean of the records.

    For vectors of a text or image model, which have length 1 or are scaled to it. Records longer than
    ``radius`` are shortened to it; queries are taken as they are. Values may be negative, and a large value
    needs many records in about the direction of q, not near to it. Declared bounds are not taken: moving the
    origin would change every product.

    Parameters
    ----------
    dim : int
        Number of columns.
    radius : float, default 1.0
        The length that no record exceeds: declared, never computed from the records.

    Examples
    --------
    >>> DotProductKernel(dim=2).similarity([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0], [-0.5, 0.0]])
    array([[ 1. ,  0. , -0.5]])
    """

    name: ClassVar[str] = "dot-product"
    takes_bounds: ClassVar[bool] = False
    positive_definite: ClassVar[bool] = True
    signed: ClassVar[bool] = True

    dim: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(self)

    def inner_degree(self) -> int:
        """1."""
        return 1

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        return _products(records, queries, self.radius)


@register
@dataclass(frozen=True, slots=True)
class PolynomialKernel(InnerProductKernel):
    """``(x·q/radius²)**2``: large where many records lie along the direction of q, on either side.

    Its sums hold the second moments of the records, d·(d + 1)/2 numbers: principal directions and linear
    discriminants are computed from them. Records longer than ``radius`` are shortened to it. Up to 4096
    columns.

    Parameters
    ----------
    dim : int
        Number of columns.
    radius : float, default 1.0
        The length that no record exceeds: declared, never computed from the records.
    degree : int, default 2
        The power. Only 2: the first is `DotProductKernel`, and the third has d³/6 sums.

    Examples
    --------
    >>> PolynomialKernel(dim=2).similarity([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0], [-0.5, 0.0]])
    array([[1.  , 0.  , 0.25]])
    """

    name: ClassVar[str] = "polynomial"
    takes_bounds: ClassVar[bool] = False
    positive_definite: ClassVar[bool] = True

    dim: int
    radius: float = 1.0
    degree: int = 2

    def __post_init__(self) -> None:
        check_parameters(self)
        if type(self.degree) is not int or self.degree != 2:
            raise UsageError(
                "degree",
                "must be 2",
                got=shown(self.degree),
                remedy="use the dot-product kernel for degree 1",
            )

    def inner_degree(self) -> int:
        """2."""
        return self.degree

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        products = _products(records, queries, self.radius)
        return products * products
