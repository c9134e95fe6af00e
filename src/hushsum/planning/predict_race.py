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
from hushsum.releases.noisy_table import ROUNDING_SHARE

ROWS = (100, 200, 500, 1000, 2000, 5000)
_NANOSECONDS_INCREMENT = 0.6
_NANOSECONDS_PRODUCT = 0.03


MANY_ROWS = (10_000, 20_000, 50_000, 100_000, 200_000)
"""With δ or ρ only, whose noise does not grow with rows."""

WIDTHS = (250, DEFAULT_WIDTH)
"""Wide rows err less, narrow ones leave room for more of them."""

_MOST_CELLS = 1 << 26
"""Of a tally, at 8 bytes a cell; what is released takes half of that in memory."""


def race_options(
    question: Question,
    spread: Callable[[int], Spread],
    *,
    rows: int | Sequence[int] | None,
    width: int | None,
) -> list[Option]:
    """One option for each number of rows; ``spread`` tells how much rows of a given width disagree.

    Cells are published as they are where the file is small enough, else rounded.
    """
    if not question.kernel.hashable:
        return []
    many = rows is None and not question.promise.pure
    options = []
    for number in _row_choices(question, rows):
        narrow = many and number >= MANY_ROWS[0]
        for wide in (width,) if width is not None else WIDTHS if narrow else (DEFAULT_WIDTH,):
            if rows is None and number * wide > _MOST_CELLS:
                continue
            basis = HashRows(question.kernel, number, wide, 0)
            option = _option(question, basis, spread(wide), rounded=False)
            if many and option.size > question.max_bytes:
                option = _option(question, basis, spread(wide), rounded=True)
            options.append(option)
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


def _option(question: Question, basis: HashRows, spread: Spread, *, rounded: bool) -> Option:
    noise = question.noise(basis)
    keep, rows, records = 1.0 / (1.0 - basis.fold_rate), basis.rows, question.records
    cell_variance = noise.variance * (1.0 + ROUNDING_SHARE * rounded)
    noise_variance = cell_variance / rows * (keep / records) ** 2
    own_variance = spread.row_variance / rows * keep**2
    # The mean over few rows of Laplace noise is more peaked than normal: excess kurtosis 3/rows moves E|x|
    # by −1/(8·rows).
    peaked = 1.0 - 1.0 / (8.0 * rows) if noise.mechanism.endswith("laplace") else 1.0
    kernel = basis.kernel
    products = getattr(kernel, "dim", 1) * getattr(kernel, "power", 1) * getattr(kernel, "bits", 1)
    # Over the cells of a row, counts of N records with mean similarity κ have the variance N²·κ/W.
    uneven = records * float(spread.density.mean() / basis.width) ** 0.5
    bytes_a_cell = question.cell_bytes(noise, records, spread=uneven, rounded=rounded)
    settings: dict[str, float] = {"rows": rows, "width": basis.width}
    if rounded:
        settings["rounded"] = True
    return Option.of(
        question,
        method="race",
        settings=settings,
        mechanism=noise.mechanism,
        shape=basis.shape,
        noise=NORMAL_MEAN_ABSOLUTE * noise_variance**0.5 * peaked,
        approximation=NORMAL_MEAN_ABSOLUTE * float(np.sqrt(own_variance).mean()),
        error=NORMAL_MEAN_ABSOLUTE * float(np.sqrt(noise_variance + own_variance).mean()),
        size=round(rows * basis.width * bytes_a_cell) + HEADER_BYTES,
        seconds=records * rows * (_NANOSECONDS_INCREMENT + _NANOSECONDS_PRODUCT * products) * 1e-9,
    )
