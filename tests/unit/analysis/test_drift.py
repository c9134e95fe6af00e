"""Drift over the steps of a stream."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.analysis import Coordinates
from hushsum.analysis._drift import _Series
from hushsum.errors import UsageError
from hushsum.releases import NoisyTable

KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.5)


def steps(
    change: int | None,
    *,
    number: int = 10,
    seed: int = 0,
    tally: Any = None,
    endless: bool = False,
    **view: Any,
) -> list[NoisyTable]:
    rng = np.random.default_rng(seed)
    pattern = hs.grid(KERNEL, bounds=(-4, 4)) if tally is None else tally
    horizon = None if endless else number
    stream = hs.stream(pattern, horizon=horizon, epsilon=1.0, delta=1e-6, insecure_noise_seed=seed, **view)
    made = []
    for step in range(1, number + 1):
        shift = 0.8 if change is not None and step >= change else 0.0
        made.append(stream.add(rng.normal(shift, 1.0, (800, 1))).step())
    return made


@pytest.mark.parametrize("endless", [False, True])
def test_a_change_is_found_at_its_step(endless: bool) -> None:
    made = steps(6, endless=endless)
    found = hs.drift(made)
    assert (found.detected_at, found.since) == (6, 6)
    assert "records from step 6 on are different" in str(found)
    assert json.loads(json.dumps(found.as_json()))["since"] == 6
    assert "Drift" in found._repr_html_()
    assert found.plot().get_xlabel() == "step"
    # What was decided at a step does not change when more steps come.
    early = hs.drift(made[:7])
    for one, other in zip(early.checks, found.checks[:6], strict=True):
        assert (one.step, one.since) == (other.step, other.since)
        assert one.p_value == pytest.approx(other.p_value, rel=1e-9)
        assert one.threshold == other.threshold


def test_without_a_horizon_all_alarms_there_can_ever_be_share_the_rate() -> None:
    found = hs.drift(steps(None, endless=True), false_alarm=0.05)
    assert found.detected_at is None
    assert "0.05 over all steps there will ever be" in str(found)
    # Of ⌊log₂ i⌋ + 1 comparisons each; from step i on no more than 1/log₂(i + 1) is left.
    used = sum(check.threshold * (int(np.log2(i)) + 1) for i, check in enumerate(found.checks, 1))
    assert used + 0.05 / np.log2(len(found.checks) + 2) == pytest.approx(0.05)


def test_without_a_change_nothing_is_found() -> None:
    found = hs.drift(steps(None))
    assert found.detected_at is None
    assert "none detected" in str(found)


def test_windows_that_do_not_overlap_are_compared() -> None:
    made = steps(6, window=2)
    assert hs.drift(made[1::2]).detected_at == 6
    with pytest.raises(UsageError, match="at least 2 steps apart"):
        hs.drift(made)


def test_sketches_and_given_points() -> None:
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=200, width=60)
    made = steps(6, tally=tally)
    with pytest.raises(UsageError, match="at must be given"):
        hs.drift(made)
    assert hs.drift(made, at=np.linspace(-3, 3, 30)[:, None]).detected_at in (6, 7)


def test_what_is_no_series_is_refused() -> None:
    made = steps(None, number=3)
    other = steps(None, number=3, seed=5)
    single = hs.grid(KERNEL, bounds=(-4, 4)).add([[0.0]] * 100).release(epsilon=1.0, insecure_noise_seed=1)
    for wrong, words in (
        (made[:1], "at least two"),
        ([made[0], other[1]], "one stream"),
        ([made[0], single], "one stream"),
        (made[::-1], "in their order"),
        ([made[0], made[0]], "in their order"),
        (steps(None, number=3, decay=0.5), "decays"),
    ):
        with pytest.raises(UsageError, match=words):
            hs.drift(wrong)  # type: ignore[arg-type]
    for parameters in ({"false_alarm": 1.5}, {"cluster_size": 0.0}, {"at": [[0.0]]}):
        with pytest.raises(UsageError):
            hs.drift(made, **parameters)


def test_a_number_that_is_two_deviations_too_large_is_no_drift() -> None:
    """The same kernel means in both periods, but the second number is 1,000 ± 250 in place of 500."""
    mean = np.array([0.5, 0.3, 0.2])
    answers = hs.GaussianKernel(dim=1, bandwidth=1.0).similarity([[0.0], [1.0], [2.0]], [[0.0], [1.0], [2.0]])
    coordinates = Coordinates.of(answers)
    assert coordinates is not None
    series = _Series(
        numbers=(1, 2),
        sums=np.outer([5000.0, 500.0], mean),
        counts=np.array([5000.0, 1000.0]),
        table=np.eye(2),
        count=np.diag([0.0, 250.0**2]),
        shape=np.eye(3),
        slope=0.0,
        answers=answers,
        coordinates=coordinates,
        moves=None,
        cluster_size=1.0,
    )
    found = series.check(1, 0.01).p_value
    assert found is not None
    assert found > 0.01
