"""What an attacker learns by asking: much from fresh noise, nothing more from one path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import SecretRefused, UsageError
from hushsum.privacy import Promise
from hushsum.secret_functions import FreshAnswers, answer_once, density_function, laplace_rate, serve

KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.2)
X = np.random.default_rng(3).uniform(0.0, 1.0, size=(300, 1))
SPEND: Any = {"epsilon": 1.0, "delta": 1e-6}
HERE = [[0.5]]
TRUTH = float(KERNEL.exact_sum(X, HERE)[0])


def function() -> Any:
    return density_function(X, KERNEL, bounds=(0, 1))


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_averaging_fresh_answers_of_a_service_without_a_limit_recovers_the_truth(mechanism: str) -> None:
    # Noise for one answer, given again and again: what a service does that forgets to count.
    requested = 4000
    fresh = [
        FreshAnswers(function(), answers=1, **SPEND, mechanism=mechanism, insecure_noise_seed=10 * seed)
        for seed in range(requested)
    ]
    mean = float(np.mean([each(HERE)[0] for each in fresh]))
    one = fresh[0].noise_stderr
    # Fixed seeds; 5 standard errors of the mean.
    assert abs(mean - TRUTH) < 5.0 * one / np.sqrt(requested)
    assert 5.0 / np.sqrt(requested) < 0.1, "a tenth of the noise that was to protect"


def test_averaging_the_answers_of_a_served_function_tells_nothing_more() -> None:
    errors = []
    for seed in range(200):
        served = serve(function(), **SPEND, insecure_noise_seed=1000 * seed)
        answers = np.array([served(HERE)[0] for _ in range(20)])
        assert np.ptp(answers) == 0.0
        errors.append(float(answers.mean()) - TRUTH)
    # The error of the mean is that of one answer: its variance over 200 seeds within 5 standard errors.
    assert abs(np.var(errors) / served.noise_stderr**2 - 1.0) < 5.0 * np.sqrt(2.0 / 200)


def test_many_near_points_tell_no_more_than_the_path_allows() -> None:
    errors = []
    for seed in range(100):
        served = serve(function(), **SPEND, insecure_noise_seed=1000 * seed)
        cloud = 0.5 + np.linspace(-0.01, 0.01, 60)[:, None]
        errors.append(float(np.mean(served(cloud) - KERNEL.exact_sum(X, cloud))))
    # Within a twentieth of the bandwidth the path hardly changes: averaging 60 points removes nothing of it.
    assert np.std(errors) > 0.7 * served.noise_stderr


def test_differences_of_close_points_reveal_no_gradient() -> None:
    # With smooth noise alone the difference quotient of close points would be the gradient of f + s·G at
    # best; at distances floats cannot resolve in G it would be that of f itself. The jitter drowns it.
    step = 2.0**-24
    slope = float((KERNEL.exact_sum(X, [[0.8 + 1e-3]]) - KERNEL.exact_sum(X, [[0.8 - 1e-3]]))[0]) / 2e-3
    guesses = []
    for seed in range(300):
        served = serve(function(), **SPEND, insecure_noise_seed=1000 * seed)
        answers = served([[0.8], [0.8 + step * 8]])
        guesses.append(float(answers[1] - answers[0]) / (step * 8))
    spread = float(np.std(guesses))
    jitter = served.noise_stderr * np.sqrt(2.0 * 1e-8) / (step * 8)
    assert spread == pytest.approx(jitter, rel=5.0 * np.sqrt(0.5 / 300))
    assert spread > 3.0 * abs(slope), "a guess from two close points is worthless"


def test_points_that_single_precision_cannot_tell_apart_are_one_point() -> None:
    served = serve(function(), **SPEND)
    assert served([[0.8]]) == served([[0.8 + 2.0**-40]])
    two = served([[0.8], [0.8 + 2.0**-22]])
    assert two[0] != two[1]


def test_fresh_answers_end_and_stay_at_home() -> None:
    fresh = FreshAnswers(function(), answers=3, **SPEND)
    fresh([[0.1], [0.2]])
    with pytest.raises(UsageError, match="only 1 answers are left"):
        fresh([[0.1], [0.2]])
    fresh([[0.1]])
    with pytest.raises(UsageError, match="left"):
        fresh([[0.1]])
    import pickle

    with pytest.raises(SecretRefused):
        pickle.dumps(fresh)
    for wrong in ({"answers": 0}, {"answers": 1, "mechanism": "uniform"}):
        arguments: Any = {**SPEND, **wrong}
        with pytest.raises(UsageError):
            FreshAnswers(function(), **arguments)


def test_the_noise_of_fresh_answers_grows_and_that_of_a_path_does_not() -> None:
    one = serve(function(), **SPEND).noise_stderr
    assert FreshAnswers(function(), answers=1, **SPEND).noise_stderr == pytest.approx(one)
    assert FreshAnswers(function(), answers=100, **SPEND).noise_stderr == pytest.approx(10.0 * one, rel=1e-6)
    laplace = FreshAnswers(function(), answers=100, epsilon=1.0, mechanism="laplace")
    assert laplace.noise_stderr == pytest.approx(100.0 * np.sqrt(2.0))


def test_composition_at_delta_beats_adding_up() -> None:
    pytest.importorskip("dp_accounting")
    rate = laplace_rate(Promise.of(epsilon=1.0, delta=1e-6), 200)
    assert 1.0 / 200 < rate < 1.0
    assert rate > 2.0 / 200


def test_a_test_set_is_answered_once_and_together() -> None:
    at = np.array([[0.2], [0.7], [0.2]])
    answers = answer_once(function(), at, **SPEND, insecure_noise_seed=1)
    assert answers.values[0] == answers.values[2]
    assert answers.stderr == pytest.approx(4.2245, rel=1e-3)
    assert np.abs(answers.values - KERNEL.exact_sum(X, at)).max() < 6.0 * answers.stderr
    assert str(answers.claim.mechanism) == "gaussian process path"
