"""The public facts of a released function that is read in another way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from hushsum.kernels.base import Kernel
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.presentation import Presented

PUBLIC_SAMPLE: Final = "the sample that parameters and answers were derived from is public"


class ForwardedFacts(Presented):
    """A reader of ``function`` and public points, whose claim, kernel, count, columns and bounds are those of
    that function. The points are read, and stored, as they are, so the claim states that they are public.
    """

    function: Any

    @property
    def claim(self) -> Claim:
        """What the release promises, and that the public points are public."""
        claim: Claim = self.function.claim
        if PUBLIC_SAMPLE in claim.assumptions:
            return claim
        return replace(claim, assumptions=(*claim.assumptions, PUBLIC_SAMPLE))

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
