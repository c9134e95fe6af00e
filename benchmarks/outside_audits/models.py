"""Worlds of the models that release sketches, grids and moments: small ones, so that one record shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

import hushsum as hs
from benchmarks.outside_audits.worlds import (
    MANY,
    TABLES,
    Budget,
    Sampler,
    World,
    draws_of,
    from_tables,
    of_model,
    one_by_one,
    table_loss,
)
from hushsum.methods import Ranks, rank_sensitivity
from hushsum.models import _outliers as outlier_detector
from hushsum.privacy import GAUSSIAN, LAPLACE, PERMUTE_AND_FLIP, Relation
from hushsum.tally import Tally

_SKETCH: dict[str, Any] = {"rows": 1, "width": 16, "random_state": 0}
_CROWD = [[-0.9]] * 2
_MORE = [*_CROWD, [0.9]]


def model_worlds() -> Iterator[World]:
    """Each model with pure ε; what they release with δ is that of their bases."""
    plain = (_CROWD,), (_MORE,)
    labels = (_CROWD, [0, 1]), (_MORE, [0, 1, 1])
    targets = (_CROWD, [0.5, 0.5]), ([*_CROWD, [1.0]], [0.5, 0.5, 1.0])
    corner = "one record in a corner of the box; all sums and the count"
    made: list[tuple[str, str, Callable[..., Any], Any]] = [
        (
            "PrivateClassifier",
            "one record",
            partial(hs.PrivateClassifier, classes=[0, 1], method="kernel", **_SKETCH),
            labels,
        ),
        (
            "PrivateClassifier, discriminant",
            "one record; sums, numbers and second moments",
            partial(
                hs.PrivateClassifier,
                classes=[0, 1],
                method="discriminant",
                column_scaling="bounds",
                random_state=0,
            ),
            labels,
        ),
        ("PrivateNeighbors", "one record", partial(hs.PrivateNeighbors, **_SKETCH), plain),
        ("PrivateSampler", "one record", partial(hs.PrivateSampler, **_SKETCH), plain),
        (
            "PrivateOutlierDetector",
            "one record",
            partial(hs.PrivateOutlierDetector, method="kernel", **_SKETCH),
            plain,
        ),
        (
            "PrivateLinearSVC, sketch",
            "one record",
            partial(hs.PrivateLinearSVC, classes=[0, 1], rows=1, random_state=0),
            labels,
        ),
        ("PrivateHistogram", "one record", partial(hs.PrivateHistogram, bins=4), plain),
        (
            "PrivateDensity, grid",
            "one record",
            partial(hs.PrivateDensity, method="grid", bandwidth=2.0),
            plain,
        ),
        (
            "PrivateRegressor, sketch",
            "one record in a corner of the box",
            partial(hs.PrivateRegressor, method="sketch", rows=16, random_state=0),
            targets,
        ),
    ]
    for name, pair, make, data in made:
        yield World(name, pair, True, frozenset({name.split(",")[0], LAPLACE}), of_model(make, data), TABLES)
    yield World(
        "PrivateModes", "one record", True, frozenset({"PrivateModes", LAPLACE}), from_tables(_modes), TABLES
    )
    yield World(
        "PrivateSynthesizer",
        "one record; its one marginal and the count",
        True,
        frozenset({"PrivateSynthesizer", LAPLACE}),
        from_tables(_synthesizer),
        TABLES,
    )
    for pure in (True, False):
        yield World(
            "PrivateRegressor, adassp",
            corner,
            pure,
            frozenset({"PrivateRegressor", LAPLACE if pure else GAUSSIAN}),
            of_model(partial(hs.PrivateRegressor, method="adassp"), targets),
            MANY if pure else TABLES,
        )
    yield World(
        "PrivateOutlierDetector, contamination",
        "one record in a cell of its own; sketch, count and threshold",
        True,
        frozenset({"PrivateOutlierDetector", PERMUTE_AND_FLIP}),
        _contamination,
        releases={0.5: 800, 1.0: 1_500, 3.0: 4_000},
    )


@lru_cache
def _modes_tally(side: int) -> Tally:
    model = hs.PrivateModes(**_SKETCH).partial_fit((_CROWD, _MORE)[side])
    tally = model._ready(model._state.secret)
    assert isinstance(tally, Tally)
    return tally


def _modes(side: int, budget: Budget) -> list[Any]:
    """The sketch of `PrivateModes` without the search for modes, which is slow and post-processing."""
    return [_modes_tally(side).release(**budget.arguments)]


@lru_cache
def _synthesizer_tally(side: int) -> Tally:
    model = hs.PrivateSynthesizer(bins=4, marginals="all").partial_fit((_CROWD, _MORE)[side])
    tally = model._ready(model._state.secret)
    assert isinstance(tally, Tally)
    return tally


def _synthesizer(side: int, budget: Budget) -> list[Any]:
    """The marginals of `PrivateSynthesizer` without the fit, which is slow and post-processing."""
    return [_synthesizer_tally(side).release(**budget.arguments)]


_HALF = Fraction(1, 2)


def _contamination(budget: Budget) -> Sampler:
    """The loss of sketch and count, and of the threshold given both.

    The threshold is a median of scores: with as many records as one more, all thresholds between the score of
    that record and those of the others gain half a rank, and all others lose half.
    """
    data = [[-0.9]], [[-0.9], [0.9]]

    def make(share: float | None, **arguments: Any) -> Any:
        return hs.PrivateOutlierDetector(**_SKETCH, method="kernel", contamination=share, **arguments)

    exact = [draws_of(make(None, epsilon=1e8), (each,), Budget(1e8))().parts["similarity"] for each in data]
    draws = [draws_of(make(0.5, epsilon=budget.epsilon), (each,), budget) for each in data]
    rate = (
        float(outlier_detector.QUANTILE_SHARE)
        * budget.epsilon
        / (2.0 * rank_sensitivity(_HALF, Relation.ADD_REMOVE, 1))
    )
    records = np.array(data[1])
    grid = outlier_detector._THRESHOLDS

    def score(side: int) -> float:
        bundle = draws[side]()
        function = bundle.parts["similarity"]
        values = function(records)
        chosen = int(np.searchsorted(grid, float(bundle.arrays["offset"][0])))
        chances = [_chance(Ranks.of(values[: side + 1], grid).scores(_HALF), chosen, rate) for side in (0, 1)]
        return table_loss(function, exact[0], exact[1]) + float(np.log(chances[1] / chances[0]))

    return one_by_one(score)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)


def _chance(scores: list[int], chosen: int, rate: float) -> float:
    """The probability of one candidate under permute-and-flip: the integral of its proof, level by level."""
    levels, numbers = np.unique(scores, return_counts=True)
    weights = np.exp(rate * (levels - levels[-1]))
    own = weights[np.searchsorted(levels, scores[chosen])]
    at = (_NODES + 1.0) / 2.0
    with np.errstate(divide="ignore"):
        inside = (numbers * np.log1p(-at[:, None] * weights)).sum(axis=1) - np.log1p(-at * own)
    return float(own * (np.exp(inside) * _WEIGHTS).sum() / 2.0)
