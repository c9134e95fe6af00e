"""The Hamming kernel: bit sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushsum import _native
from hushsum._types import Floats
from hushsum.kernels.base import Batch, CategoricalKernel, HashableKernel, Hasher
from hushsum.kernels.parameters import check_parameters
from hushsum.kernels.public_randomness import multiply_shift, row_words
from hushsum.kernels.registry import register
from hushsum.records.bounds import Bounds
from hushsum.records.category_codes import as_codes


@register
@dataclass(frozen=True, slots=True)
class HammingKernel(HashableKernel, CategoricalKernel):
    """The share of columns in which two records agree; for bits and integer codes of categories.

    Every column weighs the same and codes have no order. Declared bounds are not taken.

    Parameters
    ----------
    dim : int
        Number of columns.
    power : int, default 1
        Columns sampled by one hash; the similarity is taken to that power.

    Notes
    -----
    The hash is the codes at ``power`` columns drawn with replacement (Indyk, Motwani 1998).

    Examples
    --------
    >>> HammingKernel(dim=4).similarity([[1, 0, 1, 7]], [[1, 0, 0, 7], [0, 1, 0, 0]])
    array([[0.75, 0.  ]])
    """

    name: ClassVar[str] = "hamming"
    positive_definite: ClassVar[bool] = True

    dim: int
    power: int = 1

    def __post_init__(self) -> None:
        check_parameters(self)

    def prepare(
        self,
        data: object,
        bounds: Bounds | None = None,
        *,
        clip: bool = True,
        columns: Sequence[str] | None = None,
    ) -> Batch:
        """Rows of ``dim`` 32-bit codes."""
        codes = as_codes(data, dim=self.dim, columns=columns)
        return Batch((codes,), len(codes))

    def agreement_power(self) -> int:
        """``power``."""
        return self.power

    def numbers_per_row(self) -> int:
        """One column for each of ``power`` samples."""
        return self.power

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """The column-sampling hash functions."""
        words = row_words("hamming/columns", seed, rows, self.power)
        # The high half of word × dim: uniform up to 2⁻³² · dim, without the bias of a remainder.
        columns = ((words >> np.uint64(32)) * np.uint64(self.dim)) >> np.uint64(32)
        multipliers, addends = multiply_shift(self.name, seed, rows, self.power)
        return _native.CodeHasher(columns.astype(np.int32), multipliers, addends, width, True)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        x, q = records.arrays[0], queries.arrays[0]
        agree = np.zeros((len(x), len(q)))
        for column in range(self.dim):
            agree += x[:, column, None] == q[None, :, column]
        result: Floats = (agree / self.dim) ** self.power
        return result
