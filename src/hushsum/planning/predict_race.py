"""The predicted error of hash rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hushsum.bases.hash_rows import HashRows
from hushsum.bases.race_theory import rows_for_laplace
from hushsum.kernels.parameters import positive_integer
from hushsum.methods.race import DEFAULT_WIDTH
from hushsum.planning.plan import Option
from hushsum.planning.question import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Question
from hushsum.planning.spread import Spread

ROWS = (100, 200, 500, 1000, 2000, 5000)
_NANOSECONDS_INCREMENT = 0.6
_NANOSECONDS_PRODUCT = 0.03


MANY_ROWS = (10_000, 20_000, 50_000)
NARROW = 250
"""Cells of a row where there are many rows: a quarter of the file. Folding then adds up to as much to the
spread of a row as hashing has, where records fall into few cells; more rows make up for it.
"""


def race_options(
    question: Question,
    spread: Callable[[int], Spread],
    *,
    rows: int | Sequence[int] | None,
    width: int | None,
) -> list[Option]:
    """One option for each number of rows; ``spread`` tells how much rows of a given width disagree."""
    if not question.kernel.hashable:
        return []
    options = []
    for number in _row_choices(question, rows):
        wide = width if width is not None else NARROW if number >= MANY_ROWS[0] else DEFAULT_WIDTH
        options.append(_option(question, HashRows(question.kernel, number, wide, 0), spread(wide)))
    if rows is not None:
        return options
    return [option for option in options if option.size <= question.max_bytes] or options[:1]


def _row_choices(question: Question, rows: int | Sequence[int] | None) -> Sequence[int]:
    if rows is not None:
        given = rows if isinstance(rows, Sequence) else [rows]
        return sorted({positive_integer("rows", r, at_most=1 << 24) for r in given})
    if question.promise.pure:
        assert question.promise.epsilon is not None
        share = float(question.promise.epsilon) / question.moves
        return sorted({*ROWS, rows_for_laplace(question.records, share, ROWS[-1])})
    return [*ROWS, *MANY_ROWS]


def _option(question: Question, basis: HashRows, spread: Spread) -> Option:
    noise = question.noise(basis)
    keep, rows, records = 1.0 / (1.0 - basis.fold_rate), basis.rows, question.records
    noise_variance = noise.variance / rows * (keep / records) ** 2
    own_variance = spread.row_variance / rows * keep**2
    # The mean over few rows of Laplace noise is more peaked than normal: excess kurtosis 3/rows moves E|x|
    # by −1/(8·rows).
    peaked = 1.0 - 1.0 / (8.0 * rows) if noise.mechanism.endswith("laplace") else 1.0
    kernel = basis.kernel
    products = getattr(kernel, "dim", 1) * getattr(kernel, "power", 1) * getattr(kernel, "bits", 1)
    cells = rows * basis.width
    return Option.of(
        question,
        method="race",
        settings={"rows": rows, "width": basis.width},
        mechanism=noise.mechanism,
        shape=basis.shape,
        noise=NORMAL_MEAN_ABSOLUTE * noise_variance**0.5 * peaked,
        approximation=NORMAL_MEAN_ABSOLUTE * float(np.sqrt(own_variance).mean()),
        error=NORMAL_MEAN_ABSOLUTE * float(np.sqrt(noise_variance + own_variance).mean()),
        size=cells * question.cell_bytes(noise, records) + HEADER_BYTES,
        seconds=records * rows * (_NANOSECONDS_INCREMENT + _NANOSECONDS_PRODUCT * products) * 1e-9,
    )
