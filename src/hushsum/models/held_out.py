"""Hash rows that take no part in a search, so that what it finds can be read with valid errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import RowReading
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.table import TableFunction

Floats = NDArray[np.float64]

_FEWEST_ROWS: Final = 8
"""Fewer rows than this on either side, and their spread says too little: none are held out then."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """A released table whose last ``rows`` rows are kept apart; ``searched`` answers from the others.

    The rows of a table are independent, hash functions and noise alike, so a query that was found with some
    of them was chosen without regard to the rest.
    """

    whole: NoisyTable
    searched: NoisyTable
    rows: int

    @classmethod
    def of(cls, function: NoisyTable, part: float) -> HeldOut:
        """Keep a part of the rows apart; whole blocks of them, where rows share random numbers. A grid or
        random features have no rows to hold out.
        """
        if not isinstance(function, TableFunction):
            return cls(function, function, 0)
        block = function.reading.independent_rows
        blocks = function.rows // block
        apart = max(_FEWEST_ROWS, round(part * blocks)) if part > 0.0 else 0
        if apart == 0 or blocks - apart < _FEWEST_ROWS:
            return cls(function, function, 0)
        first = (blocks - apart) * block
        searched = TableFunction(
            _first_rows(function.reading, first),
            function.table[:first],
            function.claim,
            function.noise,
            function.noisy_count,
            function.count_noise,
            function.producer,
        )
        return cls(function, searched, function.rows - first)

    def heights(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean kernel values at points that were found by ``searched``, and their standard errors; from the
        rows that were held out.
        """
        f = self.whole
        assert isinstance(f, TableFunction)
        first = f.rows - self.rows
        cells = f.reading.cells(f.basis.prepare_queries(points))[:, first:]
        counts = f.table[np.arange(first, f.rows), cells].astype(np.float64)
        block = f.reading.independent_rows
        blocks = counts.shape[1] // block
        means = counts[:, : blocks * block].reshape(len(points), blocks, block).mean(axis=2)
        sums = f.reading.unfold(means.mean(axis=1), f.count)
        keep = 1.0 / (1.0 - f.reading.fold_rate)
        variance = np.maximum(means.var(axis=1, ddof=1) / blocks, f.noise.variance / self.rows)
        # f̂/N̂ with both estimated, as in TableFunction.query.
        slope = keep * f.reading.fold_rate + sums / f.count
        errors: Floats = np.sqrt(keep**2 * variance + slope**2 * f.count_stderr**2) / f.count
        return sums / f.count, errors


def _first_rows(reading: RowReading, rows: int) -> RowReading:
    fewer = reading.basis.prefix(rows).reading(reading.kernel)
    assert isinstance(fewer, RowReading)
    return fewer
