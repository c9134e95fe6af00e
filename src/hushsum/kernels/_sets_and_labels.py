"""Kernels of sets and of columns of labels: Jaccard and Hamming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushsum import _native
from hushsum._types import Floats
from hushsum.kernels._base import Batch, CategoricalKernel, HashableKernel, Hasher
from hushsum.kernels._parameter_checks import check_parameters
from hushsum.kernels._public_randomness import multiply_shift, row_words
from hushsum.kernels._registry import register
from hushsum.records import Bounds, as_codes, as_sets


@register
@dataclass(frozen=True, slots=True)
class JaccardKernel(HashableKernel):
    """The size of the intersection of two sets over the size of their union; the empty set is similar to
    itself only.

    Records are sets of integers: rows of a sparse matrix (the positions of its non-zeros), lists of
    integers, or Arrow lists. Repeated elements count once.

    Parameters
    ----------
    power : int, default 1
        MinHashes concatenated in a row; the similarity is taken to that power.

    Notes
    -----
    The hash is the smallest image of the elements under a random function (Broder 1997): ``a·g(x) + b mod
    2³²`` with a odd and g a fixed mixing of the element with the seed. Linear functions alone are not
    min-wise independent; after mixing, the remaining bias is below what a million rows can see, which the
    tests measure.

    Examples
    --------
    >>> JaccardKernel().similarity([[1, 2, 3], []], [[2, 3, 4], []])
    array([[0.5, 0. ],
           [0. , 1. ]])
    """

    name: ClassVar[str] = "jaccard"
    positive_definite: ClassVar[bool] = True
    dim: ClassVar[None] = None

    power: int = 1

    def __post_init__(self) -> None:
        check_parameters(self)

    def _prepared(self, data: object, box: Bounds | None, clip: bool, names: Sequence[str] | None) -> Batch:
        """A list of sets of 64-bit integers."""
        sets = as_sets(data)
        return Batch((sets.values, sets.indptr), len(sets))

    def numbers_per_row(self) -> int:
        """One mixer for each of ``power`` MinHashes."""
        return self.power

    def typical_row_variance(self) -> float:
        """Sets resemble few others: about 5e-7 on Slashdot's graph, 1e-4 on ego-Facebook's."""
        return 1e-5

    def hasher(self, *, rows: int, width: int, seed: int) -> Hasher:
        """The MinHash functions."""
        words = row_words("jaccard/mixers", seed, rows, self.power)
        mixers = (words >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        shifts = (words & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        salt = int(row_words("jaccard/salt", seed, 1, 1)[0, 0])
        multipliers, addends = multiply_shift(self.name, seed, rows, self.power + 1)
        return _native.MinHasher(mixers, shifts, salt, multipliers, addends, width, True)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        x, q = _membership(records, queries)
        shared = np.asarray((x @ q.T).todense(), dtype=np.float64)
        union = x.sum(axis=1)[:, None] + q.sum(axis=1)[None] - shared
        both_empty = union == 0
        result: Floats = np.where(both_empty, 1.0, shared / np.where(both_empty, 1.0, union)) ** self.power
        return result


def _membership(records: Batch, queries: Batch) -> tuple[Any, Any]:
    """Both lists as 0/1 sparse matrices over the elements that occur."""
    from scipy.sparse import csr_array

    elements, codes = np.unique(np.concatenate((records.arrays[0], queries.arrays[0])), return_inverse=True)
    split = len(records.arrays[0])
    matrices = []
    for batch, indices in ((records, codes[:split]), (queries, codes[split:])):
        # sum_duplicates works in place, and the next block of records meets the same queries: a copy.
        starts = batch.arrays[1].copy()
        matrix = csr_array(
            (np.ones(len(indices)), indices, starts), shape=(len(batch), max(1, len(elements)))
        )
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        matrices.append(matrix)
    return matrices[0], matrices[1]


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

    def _prepared(self, data: object, box: Bounds | None, clip: bool, names: Sequence[str] | None) -> Batch:
        """Rows of ``dim`` 32-bit codes."""
        codes = as_codes(data, dim=self.dim, columns=names)
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
