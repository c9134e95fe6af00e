"""What a release drew: every step with its sensitivity and its share of the budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hushsum.privacy.release_noise import Question, ReleaseNoise


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
