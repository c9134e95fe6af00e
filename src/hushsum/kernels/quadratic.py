"""The squared inner product: the loss of a linear model, as a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hushsum._types import Floats
from hushsum.kernels.base import Batch, Kernel
from hushsum.kernels.parameters import check_parameters


@dataclass(frozen=True, slots=True)
class QuadraticKernel(Kernel):
    """k(z, q) = (z·q)². Its sum at q = (θ, −1) over records z = (φ, v) is the squared error of v ≈ θ·φ.

    It is not a collision probability, so hash rows cannot count it; the moments Σ z zᵀ hold all of its sums.
    No similarity in the usual sense: it is 1 where unit vectors coincide, and also where they are opposite.

    Examples
    --------
    >>> QuadraticKernel(dim=2).exact_sum([[1.0, 2.0], [0.5, 0.5]], [[1.0, -1.0]])
    array([1.])
    """

    name: ClassVar[str] = "quadratic"

    dim: int

    def __post_init__(self) -> None:
        check_parameters(self)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        products: Floats = records.arrays[0].astype(float) @ queries.arrays[0].astype(float).T
        return products * products
