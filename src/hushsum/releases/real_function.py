"""What released points and curves have in common: real numbers, a box, a claim, a file."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from hushsum._types import PathOrFile
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import check_columns
from hushsum.kernels.registry import COLUMNS
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.base import Released
from hushsum.releases.load import pickled
from hushsum.releases.presentation import Presented


@dataclass(frozen=True, eq=False, kw_only=True)
class RealFunction(Presented, ABC):
    """A released function of columns in a declared box, stored in real numbers; public and frozen.

    Parameters
    ----------
    kernel : Kernel
        The similarity whose sums are answered.
    bounds : Bounds
        The declared box.
    count, count_variance : float
        The estimated number of records, and the variance of that estimate; 0 where the number is public.
    claim : Claim
    method : str
        The method that made it.
    producer : str
        The version of Hushsum that made it.
    columns : tuple of str, optional
        What the columns are called; frames of queries are read by these names.
    """

    kernel: Kernel
    bounds: Bounds
    count: float
    count_variance: float
    claim: Claim
    method: str
    producer: str
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_kernel(self.kernel, self.bounds.dim)
        check_columns(self.columns, self.bounds.dim)

    @property
    def dim(self) -> int:
        """The number of columns of a query."""
        return self.bounds.dim

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return math.sqrt(self.count_variance)

    @abstractmethod
    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file; to a path atomically."""

    def __reduce__(self) -> tuple[Callable[[bytes], Released], tuple[bytes]]:
        return pickled(self)

    def _shown(self, numbers: str) -> str:
        return f"ReleasedFunction({self.kernel!r}, method={self.method!r}, {numbers}, claim={self.claim!r})"


def check_kernel(kernel: Kernel, dim: int) -> None:
    """Refuse a kernel that does not compare columns of numbers, or not as many."""
    COLUMNS.check(kernel, "a function of points in a box")
    if kernel.dim != dim:
        raise UsageError(
            parameter="kernel",
            rule=f"must have dim {dim}, one for each bound",
            got="another",
            remedy="make one with it",
        )
