"""Synthetic records and diverse choices from a released function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers
from hushsum.declaration import setting
from hushsum.errors import Argument, UsageError
from hushsum.kernels import ColumnKernel, positive_integer
from hushsum.privacy import Promise

from ._base import declared
from ._record_checks import seed_of
from ._table_model import POWER, TableModel, spread_points

Weights = Callable[[Floats], Floats]

MOST_SAMPLES: Final = 1 << 30
_SPREAD: Final = 1 << 14
_GRID_CELLS: Final = 1 << 16
_LARGEST_GRID: Final = 3
_MOST_PROPOSALS: Final = 1 << 22
_SCALES: Final = (0.1, 0.3, 1.0)
_USE_CHAIN: Final = ("use ", Argument("method", "chain"))


def from_grid(w: Weights, low: Floats, high: Floats, number: int, random: np.random.Generator) -> Floats:
    """Points in up to three columns: a cell of an even grid by its weight, then evenly inside it.

    Raises
    ------
    UsageError
        for more columns.
    """
    dim = len(low)
    if dim > _LARGEST_GRID:
        rule = f"must be 'chain' for more than {_LARGEST_GRID} columns"
        raise UsageError("method", rule, got=dim, remedy=_USE_CHAIN)
    side = round(_GRID_CELLS ** (1.0 / dim))
    unit = np.stack(np.meshgrid(*[np.arange(side)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = _positive(w(low + (high - low) * (unit + 0.5) / side))
    cells = unit[random.choice(len(unit), size=number, p=weights / weights.sum())]
    return np.asarray(low + (high - low) * (cells + random.random((number, dim))) / side, np.float64)


def by_rejection(w: Weights, low: Floats, high: Floats, number: int, random: np.random.Generator) -> Floats:
    """Even points of the box, each kept with probability w/w_max.

    The largest weight is looked for on the way; whenever a larger one turns up, earlier points are thinned
    accordingly, so the draws are exact for the largest weight seen.

    Raises
    ------
    UsageError
        if too few are kept, as happens in many columns.
    """
    largest = float(_positive(w(spread_points(low, high, _SPREAD, 0))).max())
    kept = np.empty((0, len(low)))
    proposed = 0
    while len(kept) < number:
        if proposed >= _MOST_PROPOSALS:
            rule = "rejection must keep a point now and then"
            raise UsageError(rule, got="too few in this box", remedy=_USE_CHAIN)
        points = low + (high - low) * random.random((_SPREAD, len(low)))
        weights = w(points)
        proposed += len(points)
        if weights.max() > largest:
            kept = kept[random.random(len(kept)) < largest / weights.max()]
            largest = float(weights.max())
        kept = np.concatenate([kept, points[random.random(len(points)) * largest < weights]])
    return kept[:number]


def by_chain(
    w: Weights,
    low: Floats,
    high: Floats,
    number: int,
    random: np.random.Generator,
    *,
    step: float | Floats,
    steps: int,
) -> Floats:
    """One Metropolis chain a point, in any number of columns.

    Chains start at evenly spread points drawn by their weights, which is close to the goal already, and take
    ``steps`` steps of three sizes, relative to ``step``, which may differ by column, reflected at the box.
    """
    cloud = spread_points(low, high, _SPREAD, int(random.integers(1 << 31)))
    weights = _positive(w(cloud))
    points = cloud[random.choice(len(cloud), size=number, p=weights / weights.sum())]
    here = w(points)
    for _ in range(steps):
        size = step * random.choice(_SCALES, size=(number, 1))
        trial = _reflected(points + size * random.standard_normal(points.shape), low, high)
        there = w(trial)
        moves = random.random(number) * here < there
        points[moves], here[moves] = trial[moves], there[moves]
    return points


def from_list(weights: Floats, number: int, random: np.random.Generator) -> Integers:
    """Positions drawn one after the other by weight, none twice (Efraimidis, Spirakis 2006)."""
    alive = np.flatnonzero(weights > 0.0)
    keys = np.log(random.random(len(alive))) / weights[alive]
    drawn: Integers = alive[np.argsort(-keys, kind="stable")[:number]]
    return drawn


def diverse_choice(weights: Floats, similarity: Callable[[int], Floats], number: int) -> Integers:
    """Positions of heavy items that are unlike one another, in the order in which they are picked.

    Each pick enlarges the determinant of √w·S·√w the most, which is the greedy mode of a determinantal point
    process; S is the kernel over its size, at most 1, whose row ``similarity(i)`` gives. Costs number² ×
    len(weights).

    Notes
    -----
    Chen, Zhang, Zhou, *Fast greedy MAP inference for determinantal point processes*, NeurIPS 2018. A
    collision probability is positive definite, so the determinant is never negative.
    """
    root = np.sqrt(np.maximum(weights, 0.0))
    gain = root**2
    factors = np.zeros((len(weights), number))
    picked: list[int] = []
    for k in range(min(number, int(np.count_nonzero(gain > 0.0)))):
        best = int(gain.argmax())
        if gain[best] <= 1e-12 * float(root.max()) ** 2:
            break
        picked.append(best)
        row = root[best] * similarity(best) * root
        factors[:, k] = (row - factors[:, :k] @ factors[best, :k]) / np.sqrt(gain[best])
        gain = np.maximum(gain - factors[:, k] ** 2, 0.0)
        gain[picked] = 0.0
    return np.array(picked, np.int64)


def _positive(weights: Floats) -> Floats:
    if not (weights > 0.0).any():
        remedy = ("use a larger ε or bandwidth, or ", Argument("floor", 0))
        rule = "the released function must stand out of its noise somewhere"
        raise UsageError(rule, got="nothing above its error", remedy=remedy)
    return weights


def _reflected(points: Floats, low: Floats, high: Floats) -> Floats:
    """Points beyond a face, as often as needed, mirrored at it."""
    folded = np.mod((points - low) / (high - low), 2.0)
    return np.asarray(low + (high - low) * np.minimum(folded, 2.0 - folded), np.float64)


METHODS: Final = ("chain", "grid", "rejection")
MOST_ADVISED: Final = 3
"""Columns up to which a kernel sum resolves the joint density of usual data."""


@declared
class PrivateSampler(TableModel):
    """Records that look like the private ones, drawn from one released kernel sum.

    Synthetic records follow the data *smoothed by the kernel*: they are wider than the data by about a
    bandwidth, and what is finer than it is lost. In more than three columns the kernel sum says little about
    the joint density: use `PrivateSynthesizer` there, which also takes categories and missing values, or
    choose among public candidates.

    Privacy
    -------
    One release of one sketch; every draw and choice is computed from it and spends nothing. Synthetic records
    carry the claim of the sketch, not a promise that none of them resembles a private one.

    Notes
    -----
    Coleman and Shrivastava, CCS 2021, section 4, and its preprint, which names diversity sampling.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(0.5, 0.05, (5000, 1))
    >>> model = PrivateSampler(bandwidth=0.1, random_state=0).fit(X)
    >>> bool(0.3 < np.median(model.sample(1000, random_state=1)) < 0.7)
    True
    >>> candidates = np.array([[0.5], [0.51], [0.45], [-0.9]])
    >>> 3 in model.select(candidates, 2)
    False
    """

    COMMAND = "sampler"
    DEFAULT_BANDWIDTH = 0.05
    method: str = setting(
        "chain",
        "How sample draws inside the bounds: Metropolis chains, in any number of columns; the cells of a "
        "grid, in up to three; or rejection, exact and slow.",
        choices=METHODS,
    )
    floor: float = setting(
        2.0,
        "A weight below this many of its standard errors counts as 0, so that noise in empty space draws no "
        "records.",
        at_least=0,
    )
    steps: int = setting(50, "Of each chain.", at_least=1)
    power: int = setting(1, POWER)

    def decision_function(self, X: object) -> Floats:
        """The weight of each candidate: its mean kernel value, 0 where that is within the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public candidates.
        """
        return self._weights(self._queries(X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Floats:
        """Synthetic records inside the bounds, shape (n_samples, n_features). Spends nothing beyond the one
        release.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None
            Of the draws; with an integer they are the same every time.

        Raises
        ------
        UsageError
            if the released function nowhere stands out of its noise.
        """
        number = positive_integer("n_samples", n_samples, at_most=MOST_SAMPLES)
        kernel = self._reading().kernel
        low, high = self._fitted_box()
        # Half a radian for directions.
        reach = np.array(kernel.column_bandwidths() if isinstance(kernel, ColumnKernel) else 0.5)
        draw = {"grid": from_grid, "rejection": by_rejection}.get(self.method)
        if draw is None:
            draw = partial(by_chain, step=reach, steps=self.steps)
        return draw(self._weights, low, high, number, np.random.default_rng(seed_of(random_state)))

    def select(
        self, candidates: object, n_samples: int, *, diverse: bool = True, random_state: Any = None
    ) -> NDArray[np.int64]:
        """Positions of public candidates where the data are; at most ``n_samples``, none twice.

        Parameters
        ----------
        candidates : array-like of shape (n_candidates, n_features)
        n_samples : int
        diverse : bool
            True picks heavy candidates that are unlike one another, deterministically: the greedy mode of a
            determinantal point process. False draws them at random by weight.
        random_state : int, RandomState or None
            Of random draws.
        """
        number = positive_integer("n_samples", n_samples, at_most=MOST_SAMPLES)
        points = self._queries(candidates)
        weights = self.decision_function(points)
        if not diverse:
            return from_list(weights, number, np.random.default_rng(seed_of(random_state)))
        kernel = self._reading().kernel
        size = kernel.size_bound()
        return diverse_choice(
            weights, lambda i: kernel.similarity(points[i : i + 1], points)[0] / size, number
        )

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        if n_features <= MOST_ADVISED:
            return []
        return [
            f"in {n_features} columns a kernel sum holds little information on the joint density; the "
            "synthesizer model keeps the dependences of all pairs of columns"
        ]

    def _weights(self, points: Floats) -> Floats:
        answers = self._reading().query(points)
        return np.where(answers.value > self.floor * answers.stderr, np.maximum(answers.value, 0.0), 0.0)
