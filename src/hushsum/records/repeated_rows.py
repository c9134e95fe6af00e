"""Whether rows that are declared public are a copy of the private records, or of a part of them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_AT_A_TIME: Final = 1 << 16
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SHARE: Final = 0.5
"""Public rows of which at least this part is among the records are taken for copies, and records of which at
least this part are different from each other for records that can be recognised."""


def are_copies(public: NDArray[np.float32], records: NDArray[np.float32]) -> bool:
    """Whether public rows repeat private records: all of them in any order, or half of the rows or more.

    Rows of few different values, such as answers to three questions, agree by chance. There only the whole
    set of records is recognised.

    Parameters
    ----------
    public : array of shape (n_rows, dim)
    records : array of shape (n_records, dim)
        Private, in the same columns.

    Privacy
    -------
    The answer depends on the records and is for their owner alone, before anything is spent or published:
    who uses it must hold the records.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> records = rng.normal(size=(1000, 2)).astype(np.float32)
    >>> are_copies(records[::-1], records), are_copies(records[:50], records)
    (True, True)
    >>> are_copies(records + 1, records)
    False
    """
    if not len(public) or not len(records) or public.shape[1] != records.shape[1]:
        return False
    rows = _digests(public)
    distinct = np.unique(rows)
    found = np.zeros(len(distinct), dtype=bool)
    total = np.uint64(0)
    for start in range(0, len(records), _AT_A_TIME):
        digests = _digests(records[start : start + _AT_A_TIME])
        total += digests.sum(dtype=np.uint64)
        places = np.minimum(np.searchsorted(distinct, digests), len(distinct) - 1)
        found[places[distinct[places] == digests]] = True
    if len(public) == len(records) and total == rows.sum(dtype=np.uint64):
        return True
    some = _digests(records[:: -(-len(records) // _AT_A_TIME)])
    recognised = len(np.unique(some)) >= _SHARE * len(some)
    return recognised and float(found.mean()) >= _SHARE


def _digests(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    """One number per row; rows that differ have different ones, up to chance."""
    # Zero has two signs.
    bits = np.ascontiguousarray(rows + np.float32(0.0)).view(np.uint32)
    digests = np.full(len(rows), _FACTOR)
    for column in range(rows.shape[1]):
        digests = (digests ^ bits[:, column]) * _FACTOR
        digests ^= digests >> np.uint64(29)
    return digests
