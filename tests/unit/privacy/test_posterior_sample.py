"""What a posterior sample spends, against the definition, integrated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushsum.errors import ClaimError
from hushsum.privacy import largest_leverage, largest_precision, sample_delta


def slow_delta(epsilon: float, precision: float, leverage: float, residual: float) -> float:
    """max over both directions of ∫ max(0, p − e^ε q), by a fine sum."""
    mean = residual * math.sqrt(precision * leverage) / (1.0 + leverage)
    deviation = 1.0 / math.sqrt(1.0 + leverage)
    grid = np.linspace(-14.0, 14.0 + mean, 400_001)
    step = grid[1] - grid[0]
    one = np.exp(-(grid**2) / 2.0) / math.sqrt(2.0 * math.pi)
    other = np.exp(-(((grid - mean) / deviation) ** 2) / 2.0) / math.sqrt(2.0 * math.pi) / deviation
    losses = [
        np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * step for p, q in ((one, other), (other, one))
    ]
    return float(max(losses))


@pytest.mark.parametrize("leverage", [1e-3, 0.05, 0.5, 2.0])
@pytest.mark.parametrize("precision", [0.1, 3.0, 50.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_formula_is_the_integral(epsilon: float, precision: float, leverage: float) -> None:
    found = sample_delta(epsilon, precision=precision, leverage=leverage, residual=1.5)
    assert found == pytest.approx(slow_delta(epsilon, precision, leverage, 1.5), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "leverage"), [(0.05, 1e-4), (0.5, 1e-4), (0.5, 0.01), (5.0, 0.02)])
def test_the_largest_precision_keeps_the_claim_and_a_fifth_less_noise_does_not(
    epsilon: float, leverage: float
) -> None:
    delta = 1e-6
    precision = largest_precision(epsilon, delta, leverage=leverage, residual=2.0)
    for part in (1e-3, 0.1, 0.5, 0.9, 1.0):
        for residual in (0.1, 1.0, 2.0):
            spent = sample_delta(epsilon, precision=precision, leverage=part * leverage, residual=residual)
            assert spent <= delta
    less = precision / 0.8**2
    assert sample_delta(epsilon, precision=less, leverage=leverage, residual=2.0) > delta


def test_two_neighbours_differ_as_the_module_says() -> None:
    """The law of φ·θ in units of its deviation, from the matrices themselves."""
    rng = np.random.default_rng(0)
    features, target = rng.normal(size=(30, 3)) / 3.0, rng.uniform(-1, 1, 30)
    record, value, precision = np.array([0.4, -0.3, 0.6]), 0.9, 2.0
    gram = features.T @ features + np.eye(3)
    centre = np.linalg.solve(gram, features.T @ target)
    larger = gram + np.outer(record, record)
    moved = np.linalg.solve(larger, features.T @ target + value * record)
    leverage = float(record @ np.linalg.solve(gram, record))
    unit = math.sqrt(leverage / precision)
    residual = value - float(record @ centre)
    assert float(record @ (moved - centre)) / unit == pytest.approx(
        residual * math.sqrt(precision * leverage) / (1.0 + leverage)
    )
    spread = float(record @ np.linalg.solve(larger, record)) / precision / unit**2
    assert spread == pytest.approx(1.0 / (1.0 + leverage))


@pytest.mark.parametrize("largest", [0.01, 0.3, 5.0])
def test_one_pair_stands_for_all_smaller_leverages(largest: float) -> None:
    for precision in (0.1, 1.0, 20.0):
        for epsilon in (0.1, 1.0):
            worst = sample_delta(
                epsilon, precision=precision, leverage=largest, residual=1.5 * math.sqrt(1.0 + largest)
            )
            for leverage in np.geomspace(largest / 1e4, largest, 40).tolist():
                assert sample_delta(epsilon, precision=precision, leverage=leverage, residual=1.5) <= worst


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_beyond_the_largest_leverage_nothing_is_private(epsilon: float) -> None:
    most = largest_leverage(epsilon, 1e-6)
    assert largest_precision(epsilon, 1e-6, leverage=most / 2.0, residual=1.0) > 0.0
    assert sample_delta(epsilon, precision=1e-300, leverage=1.1 * most, residual=1.0) > 1e-6
    with pytest.raises(ClaimError, match="ridge"):
        largest_precision(epsilon, 1e-6, leverage=1.1 * most, residual=1.0)
