"""What "factorised discrete gaussian" claims: brute force over adaptive streams, and dp-accounting."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from hushsum.parties.summarization import NoisySums, factored_coefficients
from hushsum.privacy.accounting import zcdp_delta, zcdp_epsilon

Floats = NDArray[np.float64]


@pytest.mark.parametrize("sent", range(5))
def test_outputs_of_neighbours_move_by_the_coefficients_from_the_round_of_the_record_on(sent: int) -> None:
    rng = np.random.default_rng(sent)
    stream, record = rng.integers(-50, 50, (5, 3)), np.array([3, -4, 12])
    outputs = []
    for extra in (0, 1):
        sums = NoisySums(3, factored_coefficients(5), Fraction(10**9))
        increments = stream + extra * np.where(np.arange(5)[:, None] == sent, record, 0)
        outputs.append([sums.release(each, insecure_noise_seed=t) for t, each in enumerate(increments)])
    moved = np.array(outputs[1]) - np.array(outputs[0])
    c = factored_coefficients(5)
    expected = [c[t - sent] * record if t >= sent else 0 * record for t in range(5)]
    assert (moved == np.array(expected)).all()
    assert (moved**2).sum() <= (c**2).sum() * (record**2).sum()


def masses(reach: int, variance: float, mean: int = 0) -> Floats:
    places = np.arange(-reach, reach + 1)
    weights = np.exp(-((places - mean) ** 2) / (2.0 * variance))
    whole = np.exp(-(np.arange(-4 * reach, 4 * reach + 1) ** 2) / (2.0 * variance)).sum()
    result: Floats = weights / whole
    return result


def excess(coefficients: list[int], bars: tuple[int, int, int], rho: float, epsilons: list[float]) -> Floats:
    """δ at each ε of three outputs, where the record is sent at once, or after an output that passed a bar.

    Both worlds' probabilities of all outputs are enumerated.
    """
    variance = sum(c * c for c in coefficients) / (2.0 * rho)
    reach = int(9 * variance**0.5) + 2 * max(coefficients)
    y = np.arange(-reach, reach + 1)
    still = masses(reach, variance)
    moved = [masses(reach, variance, c) for c in coefficients]
    loss = np.zeros(len(epsilons))
    for i in range(y.size):
        if bars[0] <= 0:
            one, two, three = moved[0][i], moved[1], moved[2][None]
        elif y[i] > bars[1]:
            one, two, three = still[i], moved[0], moved[1][None]
        else:
            one, two = still[i], still
            three = np.where((y > bars[2])[:, None], moved[0][None], still[None])
        with_it = one * two[:, None] * three
        without = still[i] * still[:, None] * still[None]
        for k, epsilon in enumerate(epsilons):
            loss[k] += float(np.maximum(with_it - np.exp(epsilon) * without, 0.0).sum())
    return loss


BARS = [(0, 0, 0), (9, 0, 0), (9, 3, -2), (9, 99, 1), (9, 99, -99)]


@pytest.mark.parametrize("bars", BARS)
def test_whenever_a_record_is_sent_what_is_claimed_holds(bars: tuple[int, int, int]) -> None:
    epsilons = [0.2, 0.8, 1.6]
    found = excess([4, 2, 1], bars, 0.25, epsilons)
    assert (found <= [zcdp_delta(0.25, epsilon) for epsilon in epsilons]).all()


def test_later_outputs_tell_more_than_the_first_alone() -> None:
    variance_for_all = (16 + 4 + 1) / 0.5
    rho_of_the_first = 16 / (2 * variance_for_all)
    (found,) = excess([4, 2, 1], (0, 0, 0), 0.25, [1.6])
    (alone,) = excess([4, 0, 0], (0, 0, 0), rho_of_the_first, [1.6])
    assert found > 1.2 * alone
    # The worst stream is that of a record sent at once.
    assert all(excess([4, 2, 1], bars, 0.25, [1.6])[0] <= found for bars in BARS)


@pytest.mark.parametrize("rho", [0.01, 0.1])
def test_dp_accounting_finds_no_more_than_is_claimed(rho: float) -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    releases, length = 11, 1
    c = factored_coefficients(releases).astype(float) * length
    deviation = float((c**2).sum() / (2.0 * rho)) ** 0.5
    whole = None
    for each in c:
        # The real Gaussian: at this width the lattice shows nothing.
        loss = pld.from_gaussian_mechanism(
            deviation, sensitivity=float(each), value_discretization_interval=1e-4
        )
        whole = loss if whole is None else whole.compose(loss)
    assert whole is not None
    found = whole.get_epsilon_for_delta(1e-5)
    claimed = zcdp_epsilon(Fraction(rho), 1e-5)
    assert 0.75 * claimed < found <= claimed
