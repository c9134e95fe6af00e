"""Choosing scaling, power and bandwidth on public records, for each ε.

The best bandwidth depends on the noise: more noise wants a wider kernel. The noise of a released mean value
depends on ε·N alone, so a release of n public records at ε·N/n has the noise that N private records will have
at ε. Every candidate is tried that way on folds of the public records; N is a declared, public size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from papers.private_race.data import Floats
from papers.private_race.scaling import SCALINGS, Map, Points

import hushsum as hs

FOLDS = 4
TRIAL_WIDTH = 250
"""Cells of a row while candidates are tried: a fourth of the default draws a fourth of the noise, and folds
few records, of which there are few.
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scaling of the columns and a Euclidean hash kernel on it."""

    scaling: str
    power: int
    bandwidth: float

    def kernel(self, dim: int) -> hs.EuclideanKernel:
        """The kernel for records of ``dim`` columns."""
        return hs.EuclideanKernel(dim=dim, bandwidth=self.bandwidth, power=self.power)

    def __str__(self) -> str:
        return f"{self.scaling} {self.power} {self.bandwidth:g}"


def candidates(bandwidths: dict[str, Sequence[float]], powers: Sequence[int]) -> tuple[Candidate, ...]:
    """Every combination of the bandwidths of a scaling with a power."""
    return tuple(
        Candidate(scaling, power, bandwidth)
        for scaling, widths in bandwidths.items()
        for power in powers
        for bandwidth in widths
    )


def maps_from(public: Floats, choices: Sequence[Candidate], tail: float) -> dict[str, Map]:
    """The scalings that the candidates name, made from public records."""
    return {name: SCALINGS[name](public, tail) for name in {choice.scaling for choice in choices}}


@dataclass(frozen=True, slots=True)
class Trial:
    """Public records to fit and to hold out, with their labels, and the factor by which every ε is multiplied
    so that the fold is as noisy as the private release will be.
    """

    kernel: hs.EuclideanKernel
    fitted: Points
    known: NDArray[np.int64]
    held: Points
    hidden: NDArray[np.int64]
    factor: float
    seed: int


def choose_on_public(
    X: Floats,
    y: NDArray[np.int64],
    choices: Sequence[Candidate],
    maps: dict[str, Map],
    score: Callable[[Trial], Sequence[float]],
    *,
    private_size: int,
    seeds: int,
) -> list[Candidate]:
    """The candidate with the best mean score over folds and hash seeds, for each ε.

    Parameters
    ----------
    X, y : arrays of shape (n, d) and (n,)
        Public records and their labels.
    score : callable
        From a trial to one score for each ε; more is better.
    private_size : int
        How many private records there will be; declared.
    """
    totals: list[Floats] = []
    points = {name: scale(X) for name, scale in maps.items()}
    for choice in choices:
        kernel, Z = choice.kernel(X.shape[1]), points[choice.scaling]
        scores = [
            score(Trial(kernel, Z[fit], y[fit], Z[held], y[held], private_size / len(fit), seed))
            for fit, held in stratified_folds(y)
            for seed in range(seeds)
        ]
        totals.append(np.mean(scores, axis=0))
    return [choices[i] for i in np.argmax(totals, axis=0)]


def stratified_folds(
    y: NDArray[np.int64], folds: int = FOLDS
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(fitted, held-out) positions; each fold has its share of every class."""
    fold = np.empty(len(y), np.int64)
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        fold[members] = np.arange(len(members)) % folds
    for number in range(folds):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)
