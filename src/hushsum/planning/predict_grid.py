"""The predicted error of weights on a grid."""

from __future__ import annotations

import math

import numpy as np

from hushsum.bases.grid_weights import MAX_CELLS, MAX_DIM, READ, GridWeights, typical_error
from hushsum.kernels.base import Kernel
from hushsum.methods.grid import cells_for
from hushsum.planning.plan import Option
from hushsum.planning.question import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Question

SPACINGS = (0.4, 0.5, 0.6, 0.75, 0.9, 1.0)
CUSP_SPACINGS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75)
"""For kernels with a cusp, which gain from finer grids than the Gaussian."""

MOST_SUMMED = 1 << 16
"""Nodes of a grid whose kernel is summed over all of them: some tenths of a millisecond a query. In three
columns that leaves grids too coarse for a cusp, where many hash rows err less.
"""

_NANOSECONDS_WEIGHT = 12.0
_QUERIES = 64


def grid_options(question: Question) -> list[Option]:
    """One option for each spacing whose file is small enough, and whose answers are quick enough; none
    without bounds, with many columns, or for a kernel that a grid does not read.
    """
    bounds, dim, kernel = question.bounds, question.dim, question.kernel
    if bounds is None or dim is None or dim > MAX_DIM or kernel.name not in READ:
        return []
    narrowed = _narrowed(kernel)
    local = kernel.name == "gaussian"
    options = []
    for spacing in SPACINGS if local else CUSP_SPACINGS:
        cells = cells_for(bounds, None, spacing, narrowed)
        if math.prod(n + 2 for n in cells) > (MAX_CELLS if local else MOST_SUMMED):
            continue
        option = _option(question, GridWeights(question.kernel, cells, bounds), spacing)
        if option.size <= question.max_bytes:
            options.append(option)
    return options


def grid_option(question: Question, basis: GridWeights) -> Option:
    """What this grid is predicted to cost, at its widest spacing along any column."""
    sides = zip(basis.bounds.low, basis.bounds.high, basis.cells, strict=True)
    widest = max((high - low) / cells for low, high, cells in sides)
    return _option(question, basis, widest / _narrowed(basis.kernel))


def _narrowed(kernel: Kernel) -> float:
    bandwidth: float = getattr(kernel, "bandwidth")  # noqa: B009  (kernels that a grid reads have one)
    return bandwidth / math.sqrt(getattr(kernel, "power", 1))


def _option(question: Question, basis: GridWeights, spacing: float) -> Option:
    noise = question.noise(basis)
    # The gain depends on where a query lies between nodes, so it is averaged over public places.
    low, high = np.array(basis.bounds.low), np.array(basis.bounds.high)
    places = low + (high - low) * np.random.default_rng(0).uniform(0.2, 0.8, (_QUERIES, len(low)))
    gain = float(basis.noise_gain(basis.prepare_queries(places)).mean())
    deviation = math.sqrt(noise.variance * gain) / question.records
    own = typical_error(spacing, len(low), basis.kernel) * question.density
    nodes = math.prod(basis.nodes)
    weight = float(question.records * basis.whole)
    # As for hash rows: counts with mean similarity κ spread over the nodes with the variance N²·κ/nodes.
    uneven = weight * math.sqrt(question.density / nodes)
    return Option.of(
        question,
        method="grid",
        settings={"spacing": spacing},
        mechanism=noise.mechanism,
        shape=basis.shape,
        noise=NORMAL_MEAN_ABSOLUTE * deviation,
        approximation=NORMAL_MEAN_ABSOLUTE * own,
        error=NORMAL_MEAN_ABSOLUTE * math.hypot(deviation, own),
        size=round(nodes * question.cell_bytes(noise, weight / 8.0, spread=uneven)) + HEADER_BYTES,
        seconds=question.records * 3 ** len(low) * _NANOSECONDS_WEIGHT * 1e-9,
    )
