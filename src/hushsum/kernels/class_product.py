"""The inner product within a class: what sums of vectors by class answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushsum._types import Floats
from hushsum.kernels.base import Batch, Kernel
from hushsum.kernels.parameters import check_parameters
from hushsum.records.norm_clipping import clipped_to_ball


@dataclass(frozen=True, slots=True)
class ClassProductKernel(Kernel):
    """k((c, x), (c', q)) = x·q/radius² where the classes c and c' are the same, else 0.

    The first column is the number of the class. Its mean over the records of class c' at q is the inner
    product of q and the mean of that class.

    Examples
    --------
    >>> ClassProductKernel(dim=3).exact_sum([[0, 1.0, 0.0], [1, 0.0, 1.0]], [[1, 0.5, 0.5]])
    array([0.5])
    """

    name: ClassVar[str] = "class-product"
    signed: ClassVar[bool] = True

    dim: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(self)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        rows, points = records.arrays[0].astype(np.float64), queries.arrays[0].astype(np.float64)
        same = rows[:, None, 0] == points[None, :, 0]
        products = clipped_to_ball(rows[:, 1:], self.radius) @ points[:, 1:].T / self.radius**2
        return np.asarray(np.where(same, products, 0.0))
