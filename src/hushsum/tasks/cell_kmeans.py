"""k-means of public cells, and the number of clusters that they suggest."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hushsum._types import Floats
from hushsum.tasks.cells import Cells, nearest_centres

_STARTS: Final = 20
_FEW_STARTS: Final = 4
_FEWEST: Final = 1e-9
_SPLIT: Final = 0.8
"""Where a cell that has to stand for two clusters is cut: ± so many standard deviations, which is about the
mean of either half of a normal law.
"""


def cluster_cells(cells: Cells, number: int, *, seed: int, starts: int = _STARTS) -> Floats:
    """The centres of the best of some runs of k-means on the means of cells, heaviest first.

    If there are fewer cells than clusters, the cells that vary most are cut in two.

    >>> cells = Cells(np.ones(4), np.array([[0.0], [1.0], [9.0], [10.0]]), np.zeros((4, 1)))
    >>> sorted(cluster_cells(cells, 2, seed=0).ravel().tolist())
    [0.5, 9.5]
    """
    # Importing scikit-learn's clusters takes longer than most of what the package does.
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    cells = enough_cells(cells, number)
    if len(cells) == number:
        return np.asarray(cells.means[np.argsort(-cells.weights, kind="stable")])
    weights = np.maximum(cells.weights, _FEWEST * max(cells.total, _FEWEST))
    # Threads that wait for each other take longer than so few points.
    with threadpool_limits(limits=1):
        run = KMeans(number, n_init=starts, random_state=seed).fit(cells.means, sample_weight=weights)
    centres = np.asarray(run.cluster_centers_, np.float64)
    held = np.bincount(run.labels_, weights=cells.weights, minlength=number)
    return np.asarray(centres[np.argsort(-held, kind="stable")])


def enough_cells(cells: Cells, number: int) -> Cells:
    """At least so many cells, all different: those with the most weight × variance are cut along the column
    in which they vary most.
    """
    weights, means, variances = cells.weights.copy(), cells.means.copy(), cells.variances.copy()
    while len(weights) < number:
        column = variances.argmax(axis=1)
        spread = variances[np.arange(len(weights)), column]
        cut = int(np.argmax(np.maximum(weights, _FEWEST) * spread))
        along = int(column[cut])
        step = np.zeros(means.shape[1])
        step[along] = _SPLIT * math.sqrt(max(spread[cut], _FEWEST))
        weights[cut] /= 2.0
        variances[cut, along] *= 1.0 - _SPLIT**2
        weights = np.append(weights, weights[cut])
        variances = np.vstack((variances, variances[cut]))
        means = np.vstack((means, means[cut] + step))
        means[cut] -= step
    return cells if len(weights) == len(cells) else Cells(weights, means, variances)


def number_of_clusters(cells: Cells, most: int, *, seed: int) -> int:
    """How many clusters the cells suggest, from 1 to ``most``: a public criterion on public values.

    The jump criterion of Sugar and James (2003). With W(k) the mean squared distance of records to their
    centre, per column, it is the k with the largest W(k)^{−Y} − W(k−1)^{−Y}: for separated clusters W falls
    by much up to their number, and by little beyond. Their exponent Y is half of the number of columns; here
    it is half of the number of directions in which the records of clusters vary, at most 4, since cells know
    W to a few percent only.
    """
    most = min(most, len(cells))
    total = max(cells.total, _FEWEST)
    inside = np.maximum(cells.weights @ cells.variances / total, 0.0)
    directions = float(inside.sum() ** 2 / max(np.square(inside).sum(), 1e-300)) if inside.any() else 1.0
    power = min(max(directions, 1.0) / 2.0, 4.0)
    centre = cells.weights @ cells.means / total
    overall = cells.inertia(centre[None]) / total
    if overall <= 0.0:
        return 1
    last, best, chosen = 0.0, -math.inf, 1
    for number in range(1, most + 1):
        left = cells.inertia(cluster_cells(cells, number, seed=seed, starts=_FEW_STARTS)) / (total * overall)
        height = max(left, 1e-6) ** -power
        if height - last > best:
            best, chosen = height - last, number
        last = height
    return chosen


def sizes_and_spread(cells: Cells, centres: Floats) -> tuple[Floats, Floats]:
    """The weight of the cells nearest to each centre, and their root mean squared distance from it."""
    nearest, square = nearest_centres(cells.means, centres)
    held: Floats = np.bincount(nearest, weights=cells.weights, minlength=len(centres)).astype(np.float64)
    far = np.bincount(
        nearest, weights=cells.weights * (square + cells.variances.sum(axis=1)), minlength=len(centres)
    )
    whole = far.sum() / max(held.sum(), _FEWEST)
    return held, np.sqrt(np.where(held > 0.0, far / np.maximum(held, _FEWEST), whole))
