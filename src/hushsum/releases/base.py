"""What every released function can do, whatever it is made of."""

from __future__ import annotations

import os
from typing import IO, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum.kernels.base import Kernel
from hushsum.privacy.claim import Claim
from hushsum.releases.answers import Answers

Floats = NDArray[np.float64]


class Released(Protocol):
    """Whatever leaves: it says what it claims, and writes itself to a file."""

    @property
    def claim(self) -> Claim:
        """What the release promises."""

    def save(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write a ``.hush`` file."""


@runtime_checkable
class ReleasedFunction(Protocol):
    """A public function of private data: ask it as often as you like, publish it, keep it.

    Asking spends nothing: every answer is computed from what was released.
    """

    @property
    def claim(self) -> Claim:
        """What the release promises."""

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums it answers."""

    @property
    def count(self) -> float:
        """The estimated number of records."""

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""

    def query(self, Q: object, *, of: str = "mean", level: float = 0.95) -> Answers:
        """Values with standard errors and intervals; ``of`` is ``"mean"`` or ``"sum"``."""

    def save(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the function to a ``.hush`` file."""
