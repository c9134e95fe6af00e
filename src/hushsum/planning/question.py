"""What is asked of a plan, in the form that every method's prediction takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hushsum.bases.base import Basis
from hushsum.kernels.base import Kernel
from hushsum.privacy.calibration import IntegerNoise, gaussian_noises, laplace_noise, split_epsilon
from hushsum.privacy.claim import Promise
from hushsum.privacy.relation import Relation
from hushsum.records.bounds import Bounds
from hushsum.releases.noisy_table import largest_step

NORMAL_MEAN_ABSOLUTE = math.sqrt(2.0 / math.pi)
HEADER_BYTES = 1000


@dataclass(frozen=True, slots=True)
class Question:
    """Declared quantities alone: how many records, which kernel on which box, and what is promised to whom.

    ``density`` is the mean kernel value at the queries that matter, ``max_bytes`` the largest file, and
    ``allow_real`` whether a proof about real arithmetic will do.
    """

    records: int
    kernel: Kernel
    bounds: Bounds | None
    promise: Promise
    relation: Relation
    count_share: Fraction
    per_unit: int | None
    density: float
    max_bytes: int
    asked: bool
    allow_real: bool = False

    @property
    def dim(self) -> int | None:
        """Columns of a record; None for sets."""
        dim: int | None = getattr(self.kernel, "dim", None)
        return dim

    @property
    def moves(self) -> int:
        """How many records' vectors one unit may move."""
        return (self.per_unit or 1) * (2 if self.relation is Relation.REPLACE else 1)

    def noise(self, basis: Basis) -> IntegerNoise:
        """The noise that a release of the whole basis would draw; the same calibration as the release's."""
        moved = basis.sensitivity(self.relation).times(self.per_unit or 1)
        count = self.per_unit or (0 if self.relation is Relation.REPLACE else 1)
        if self.promise.pure:
            epsilon, _ = split_epsilon(self.promise, private_count=count > 0, count_share=self.count_share)
            return laplace_noise(moved.l1, epsilon)
        cells = math.prod(basis.shape)
        return gaussian_noises(self.promise, moved, cells=cells, count=count, count_share=self.count_share)[0]

    def cell_bytes(
        self, noise: IntegerNoise, largest: float, *, spread: float = 0.0, rounded: bool = False
    ) -> float:
        """Bytes of a cell in a file, for exact cells up to ``largest`` that spread by ``spread`` about their
        mean.

        Packed cells take the entropy of a normal law of that deviation, log2(4.13·σ), and a quarter of a bit
        for the code.
        """
        reach = largest + 12.0 * math.sqrt(noise.variance)
        plain = 2 if reach < 2**15 else 4 if reach < 2**31 else 8
        step = largest_step(noise.variance) if rounded else 1
        deviation = math.hypot(math.sqrt(noise.variance), spread) / step
        return min(plain, max(1.0, math.log2(4.13 * deviation + 1.0) + 0.25) / 8.0)
