"""Many reports of the local model at once, with NumPy's generator: the law of ``make_report``, quickly."""

from __future__ import annotations

import math
from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

from hushsum.parties import ReportTerms


def simulated_reports(terms: ReportTerms, X: object, rng: np.random.Generator) -> bytes:
    """One line per record; no protection, since the generator is not made for it."""
    batch = terms.basis.prepare(X)
    number = len(batch)
    rows = rng.integers(0, terms.basis.rows, number)
    columns = rng.integers(0, terms.order, number)
    cells = np.empty(number, np.int64)
    for start in range(0, number, 10_000):
        part = np.zeros(number, np.bool_)
        part[start : start + 10_000] = True
        found = terms.basis.cells(batch.select(part))
        cells[part] = found[np.arange(len(found)), rows[part]]
    negative = (_bits(cells & columns) % 2).astype(np.bool_)
    negative ^= rng.random(number) < 1.0 / (1.0 + math.exp(float(terms.epsilon)))
    return lines_of(terms, rows, columns, negative)


def lines_of(
    terms: ReportTerms, rows: NDArray[np.int64], columns: NDArray[np.int64], negative: NDArray[np.bool_]
) -> bytes:
    """Reports as text."""
    packed = np.zeros((len(rows), 18), np.uint8)
    packed[:, :8] = np.frombuffer(terms.digest, np.uint8)
    packed[:, 8:12] = rows.astype("<u4").view(np.uint8).reshape(-1, 4)
    packed[:, 12:16] = columns.astype("<u4").view(np.uint8).reshape(-1, 4)
    packed[:, 16], packed[:, 17] = negative, 1
    text = np.frombuffer(b64encode(packed.tobytes()), np.uint8).reshape(-1, 24)
    return np.hstack([text, np.full((len(rows), 1), ord("\n"), np.uint8)]).tobytes()


def _bits(values: NDArray[np.int64]) -> NDArray[np.int64]:
    count = np.zeros_like(values)
    while values.any():
        count += values & 1
        values = values >> 1
    return count
