"""The difference of two released functions, and the errors of it: noise and sampling of both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.releases.answers import (
    Answers,
    Points,
    check_question,
    normal_answers,
    normal_quantile,
    query_points,
)
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.simultaneous_intervals import simultaneous_reach
from hushsum.tasks.sampling_error import RecordModel, fit_records

MOST_TOGETHER: Final = 1200
"""Of more queries the covariances are not computed: simultaneous intervals are Bonferroni's."""


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceErrors:
    """What is known of the errors of ``f − g``.

    Attributes
    ----------
    functions : pair of ReleasedFunction
    dependence : bool
        Whether the dependence of errors at different queries is known. Then both are tables of one basis,
        whose own error is the same for the same records and has no part in a difference of distributions that
        are equal.
    points : queries
        Public points that stand for the records.
    models : pair of RecordModel
        Their weights for either function.
    cluster_size : float
        How many records come together, on average; sampling variances are multiplied by it.
    """

    functions: tuple[ReleasedFunction, ReleasedFunction]
    dependence: bool
    points: Points
    models: tuple[RecordModel, RecordModel]
    cluster_size: float = 1.0

    @classmethod
    def at(
        cls,
        functions: tuple[ReleasedFunction, ReleasedFunction],
        points: Points,
        *,
        dependence: bool,
        cluster_size: float,
    ) -> DifferenceErrors:
        """Errors by what the functions say at public points."""
        answers = _answers(functions[0], points, points, dependence)
        unit = _unit(functions[0], points) if dependence else None
        models = []
        for each in functions:
            noise = (
                np.square(_stderr(each, points, "mean"))
                if unit is None
                else _noise(each, points, "mean", unit)
            )
            models.append(fit_records(answers, each(points), noise))
        return cls(functions, dependence, points, (models[0], models[1]), cluster_size)

    def values(self, Q: object, *, of: str = "mean") -> Floats:
        """f − g at queries."""
        f, g = (each(Q) if of == "mean" else each.sum(Q) for each in self.functions)
        return np.asarray(f - g)

    def noise(self, Q: object, *, of: str = "mean") -> Floats:
        """The covariance of the noise in the difference, where the dependence is known."""
        unit = _unit(self.functions[0], Q)
        f, g = (_noise(each, Q, of, unit) for each in self.functions)
        return np.asarray(f + g)

    def sampling(self, Q: object, *, of: str = "mean", pooled: bool = False) -> Floats:
        """The covariance that another sample of as many records would give the difference, from the weighted
        points of each function, or ``pooled`` from those of both as if they were of one distribution.
        """
        centred = of == "mean"
        models = (self._pooled(),) * 2 if pooled else self.models
        total: Floats | float = 0.0
        for (answers, factor), model in zip(self._answers_at(Q, of), models, strict=True):
            total = total + factor * model.covariance(answers, centred=centred)
        return np.asarray(total)

    def variances(
        self, Q: object, *, of: str = "mean", sampling: bool = True, alpha: float | None = None
    ) -> Floats:
        """The variance of the difference at each query.

        With ``alpha``, of functions whose dependence is not known, as large as their own intervals at that
        level require, which may be Student's.
        """
        if self.dependence:
            whole = self.noise(Q, of=of) + (self.sampling(Q, of=of) if sampling else 0.0)
            return np.maximum(np.diag(whole), 0.0)
        f, g = (_stderr(each, Q, of, alpha) for each in self.functions)
        total = np.square(f) + np.square(g)
        if sampling:
            for (answers, factor), model in zip(self._answers_at(Q, of), self.models, strict=True):
                total = total + factor * model.variance(answers, centred=of == "mean")
        return np.asarray(np.maximum(total, 0.0))

    def query(self, Q: object, *, of: str, level: float, simultaneous: bool, sampling: bool) -> Answers:
        """The difference with standard errors and intervals."""
        check_question(of, level)
        f = self.functions[0]
        points = query_points(Q, dim=f.dim, columns=f.columns)
        number = len(points)
        value = self.values(points, of=of)
        if not self.dependence or number > MOST_TOGETHER:
            alpha = (1.0 - level) / (max(number, 1) if simultaneous else 1)
            variance = (
                self.variances(points, of=of, sampling=sampling, alpha=alpha)
                if number <= MOST_TOGETHER
                else (
                    np.concatenate(
                        [
                            self.variances(part, of=of, sampling=sampling, alpha=alpha)
                            for part in _parts(points)
                        ]
                    )
                )
            )
            return normal_answers(value, np.sqrt(variance), level, points, simultaneous=simultaneous)
        covariance = self.noise(points, of=of) + (self.sampling(points, of=of) if sampling else 0.0)
        stderr = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        if not simultaneous:
            return normal_answers(value, stderr, level, points)

        def maxima(rng: np.random.Generator, draws: int) -> Floats:
            scale = np.where(stderr > 0.0, stderr, np.inf)
            values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
            paths = (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((number, draws))
            return np.asarray(np.abs(paths).max(axis=0))

        reach = simultaneous_reach(level, number, normal_quantile, maxima) * stderr
        return Answers(value, stderr, value - reach, value + reach, stderr.copy(), level, points, True)

    def _answers_at(self, Q: object, of: str) -> list[tuple[Floats, float]]:
        """What a record at each point adds at each query, and the factor of its variance, by function."""
        # Of tables of one basis, and of kernels otherwise, they are the same for both.
        answers = _answers(self.functions[0], self.points, Q, self.dependence)
        numbers = (max(each.count, 1.0) for each in self.functions)
        return [
            (answers, self.cluster_size * (number if of == "sum" else 1.0 / number)) for number in numbers
        ]

    def _pooled(self) -> RecordModel:
        f, g = (max(each.count, 1.0) for each in self.functions)
        one, other = self.models
        return RecordModel((f * one.weights + g * other.weights) / (f + g))


def _noise(function: ReleasedFunction, Q: object, of: str, unit: Floats) -> Floats:
    assert isinstance(function, NoisyTable)
    return function.noise_covariance(Q, of=of, unit=unit)


def _unit(function: ReleasedFunction, Q: object) -> Floats:
    assert isinstance(function, NoisyTable)
    return function.unit_covariance(Q)


def _answers(function: ReleasedFunction, points: Points, Q: object, dependence: bool) -> Floats:
    if dependence:
        assert isinstance(function, NoisyTable)
        return function.record_answers(points, Q)
    return function.kernel.similarity(points, Q)


def _stderr(function: ReleasedFunction, Q: object, of: str, alpha: float | None = None) -> Floats:
    level = 0.95 if alpha is None else 1.0 - alpha
    answers = function.query(Q, of=of, level=level)
    if not np.isfinite(answers.stderr).all():
        raise UsageError(
            rule="functions are compared by their standard errors",
            got="one whose method has no error estimate",
            remedy="compare releases of tallies",
        )
    if alpha is None:
        return answers.stderr
    half = (answers.upper - answers.lower) / 2.0
    return np.maximum(answers.stderr, half / normal_quantile(level))


def _parts(points: Points) -> Iterator[Points]:
    for start in range(0, len(points), MOST_TOGETHER):
        yield points[start : start + MOST_TOGETHER]


def share_release(f: ReleasedFunction, g: ReleasedFunction) -> bool:
    """Whether two tables of one basis have the same draw of noise: one is the other, or a rounding of it."""
    if not isinstance(f, NoisyTable) or not isinstance(g, NoisyTable) or f.noisy_count != g.noisy_count:
        return False
    if f.basis.shape != g.basis.shape:
        return False
    one, other = _some_cells(f), _some_cells(g)
    shared = min(len(one), len(other))
    apart = np.abs(one[:shared] - other[:shared]).max(initial=0)
    return bool(apart <= math.ceil((f.step + g.step) / 2))


def _some_cells(table: NoisyTable) -> NDArray[np.int64]:
    """All cells, or the first block of a large table."""
    cells = table.cells
    return (
        (cells if isinstance(cells, np.ndarray) else next(iter(cells.blocks()))).reshape(-1).astype(np.int64)
    )
