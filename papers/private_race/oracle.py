"""Baselines with their best parameter by oracle: a grid that is extended until the best value lies inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_TIE = 1e-3


@dataclass(frozen=True, slots=True)
class Grid:
    """Values of one parameter to begin with, the factor between neighbours, and what is never left.

    The limits are those of memory or time; a best value there is reported as not inside.
    """

    parameter: str
    start: tuple[float, ...]
    lowest: float
    highest: float
    factor: float = 2.0
    whole: bool = True

    def value(self, number: float) -> float:
        """A value as the method takes it."""
        return round(number) if self.whole else number


@dataclass(frozen=True, slots=True)
class Found:
    """The best value for one ε, its score (less is better), and whether worse values lie on both sides."""

    value: float
    score: float
    inside: bool


def best_values(
    grid: Grid, evaluate: Callable[[float], Mapping[float, float]]
) -> tuple[dict[float, Found], dict[float, Mapping[float, float]]]:
    """For each ε the value with the least score, and all scores by value.

    ``evaluate`` gives the scores of one value for every ε. While the best value of some ε is at an end of the
    grid, the grid goes on from there by its factor, up to its limits.

    >>> grid = Grid("bins", (16, 32), 2, 1024)
    >>> found, tried = best_values(grid, lambda bins: {1.0: abs(bins - 200), 0.1: abs(bins - 20)})
    >>> found[1.0], found[0.1].value, sorted(tried)
    (Found(value=256, score=56, inside=True), 16, [8, 16, 32, 64, 128, 256, 512])
    """
    scores: dict[float, Mapping[float, float]] = {}
    waiting = [grid.value(each) for each in grid.start]
    while waiting:
        for value in waiting:
            scores[value] = evaluate(value)
        waiting = sorted(_beyond(grid, scores))
    values = sorted(scores)
    found = {}
    for epsilon in scores[values[0]]:
        best = _best(scores, epsilon)
        found[epsilon] = Found(best, scores[best][epsilon], values[0] < best < values[-1])
    return found, scores


def _best(scores: Mapping[float, Mapping[float, float]], epsilon: float) -> float:
    """The value of the least score; of those that are as good up to a thousandth, the innermost."""
    values = sorted(scores)
    least = min(scores[value][epsilon] for value in values)
    places = [i for i, value in enumerate(values) if scores[value][epsilon] <= least + _TIE * abs(least)]
    return values[max(places, key=lambda i: min(i, len(values) - 1 - i))]


def _beyond(grid: Grid, scores: Mapping[float, Mapping[float, float]]) -> set[float]:
    """The next values where the best of some ε is the first or the last."""
    values = sorted(scores)
    following = set()
    for epsilon in scores[values[0]]:
        best = _best(scores, epsilon)
        if best == values[-1]:
            following.add(grid.value(best * grid.factor))
        elif best == values[0]:
            following.add(grid.value(best / grid.factor))
    return {each for each in following if grid.lowest <= each <= grid.highest} - set(values)


def edges(found: Mapping[float, Found]) -> Sequence[float]:
    """The ε whose best value is at an end."""
    return [epsilon for epsilon, each in found.items() if not each.inside]
