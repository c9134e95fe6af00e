"""The public facts of a released function that is read in another way."""

from __future__ import annotations

from typing import Any

from hushsum.kernels.base import Kernel
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.presentation import Presented


class ForwardedFacts(Presented):
    """A reader of ``function``, whose claim, kernel, count, columns and bounds are those of that function."""

    function: Any

    @property
    def claim(self) -> Claim:
        """What the release promises."""
        claim: Claim = self.function.claim
        return claim

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums it answers."""
        kernel: Kernel = self.function.kernel
        return kernel

    @property
    def count(self) -> float:
        """The estimated number of records."""
        return float(self.function.count)

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`."""
        return float(self.function.count_stderr)

    @property
    def dim(self) -> int | None:
        """The number of columns of a query."""
        dim: int | None = self.function.dim
        return dim

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the columns are called; None if not declared."""
        columns: tuple[str, ...] | None = self.function.columns
        return columns

    @property
    def bounds(self) -> Bounds | None:
        """The declared box that records were clipped to; None if not declared."""
        bounds: Bounds | None = self.function.bounds
        return bounds

    @property
    def producer(self) -> str:
        """Which version of Hushsum made the release."""
        return str(self.function.producer)
