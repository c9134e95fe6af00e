"""What a release drew: every step with its sensitivity and its share of the budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hushsum.privacy import Question, ReleaseNoise


@dataclass
class DrawRecord:
    """The calls in order; the exact numbers that noise was added to are kept too, for sensitivity tests."""

    choices: list[Question] = field(default_factory=list)
    laplace: list[tuple[NDArray[np.int64], int, Fraction]] = field(default_factory=list)
    gaussian: list[tuple[NDArray[np.float64], float, Fraction, Fraction]] = field(default_factory=list)

    @property
    def spent(self) -> Fraction:
        """ε of all choices and integer noises together."""
        return sum((each.epsilon for each in self.choices), Fraction(0)) + sum(
            (epsilon for _, _, epsilon in self.laplace), Fraction(0)
        )


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> DrawRecord:
    """Watch the draws of the releases that follow."""
    found = DrawRecord()
    choice, laplace, gaussian = ReleaseNoise.choice, ReleaseNoise.laplace, ReleaseNoise.gaussian

    def watched_choice(self: ReleaseNoise, question: Question, **options: Any) -> int:
        found.choices.append(question)
        return choice(self, question, **options)

    def watched_laplace(self: ReleaseNoise, counts: NDArray[np.int64], l1: int, epsilon: Fraction) -> Any:
        found.laplace.append((counts.copy(), l1, epsilon))
        return laplace(self, counts, l1, epsilon)

    def watched_gaussian(
        self: ReleaseNoise, values: Any, l2: float, epsilon: Fraction, delta: Fraction
    ) -> Any:
        found.gaussian.append((values.copy(), l2, epsilon, delta))
        return gaussian(self, values, l2, epsilon, delta)

    monkeypatch.setattr(ReleaseNoise, "choice", watched_choice)
    monkeypatch.setattr(ReleaseNoise, "laplace", watched_laplace)
    monkeypatch.setattr(ReleaseNoise, "gaussian", watched_gaussian)
    return found


@dataclass(frozen=True)
class Step:
    """One step of a release: how far two neighbours are apart in it, and how far it is calibrated for."""

    kind: str
    moved: float
    declared: float


def coupled_draws(
    monkeypatch: pytest.MonkeyPatch, first: Callable[[], Any], second: Callable[[], Any]
) -> list[Step]:
    """Release twice, the second time with what the first one drew, and compare what went into each step."""
    drawn: list[tuple[Any, Any]] = []
    steps: list[Step] = []
    replaying = False

    def watched(kind: str, exact: Callable[..., Any], moved: Callable[[Any, Any, Any], Step]) -> None:
        real = getattr(ReleaseNoise, kind)

        def draw(self: ReleaseNoise, *arguments: Any, **options: Any) -> Any:
            if not replaying:
                drawn.append((exact(arguments[0]), real(self, *arguments, **options)))
                return drawn[-1][1]
            before, result = drawn.pop(0)
            steps.append(moved(before, exact(arguments[0]), arguments))
            return result

        monkeypatch.setattr(ReleaseNoise, kind, draw)

    def length(order: int, kind: str, declared: Callable[[Any], float]) -> Callable[[Any, Any, Any], Step]:
        return lambda one, other, arguments: Step(
            kind, float(np.linalg.norm((one - other).ravel(), order)), declared(arguments[1])
        )

    def scores(one: Any, other: Any, arguments: Any) -> Step:
        return Step("choice", float(np.abs(one - other).max()), float(arguments[0].sensitivity))

    watched("choice", lambda question: np.array(question.scores, np.float64), scores)
    watched("laplace", lambda values: values.astype(np.float64), length(1, "laplace", float))
    watched(
        "gamma", lambda values: values.astype(np.float64), length(2, "gamma", lambda l2: float(l2) ** 0.5)
    )
    watched("gaussian", lambda values: values.copy(), length(2, "gaussian", float))
    first()
    replaying = True
    second()
    assert not drawn
    return steps
