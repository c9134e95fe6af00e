"""The smell test: what it notices, what it leaves in peace, and that it tells no value."""

from __future__ import annotations

import io
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hushsum as hs
from hushsum.errors import DataRefused, SuspiciousParameter
from hushsum.models import NumberColumn
from hushsum.records import is_natural, is_round
from hushsum.secret_functions import density_function, gaussian_process_function
from hushsum.tables import Basis

POINTS = np.random.default_rng(0).normal(50.0, 10.0, size=(1000, 2))
LOW, HIGH = (float(side) for side in (POINTS[:, 0].min(), POINTS[:, 0].max()))


def warned(data: Any, *, bandwidth: float = 5.0, bounds: Any = None) -> list[str]:
    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=bandwidth), rows=5, bounds=bounds)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tally.add(data)
    assert all(each.category is SuspiciousParameter for each in caught)
    assert all(each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught]


@pytest.mark.parametrize(
    "pair", [(LOW, 200), (0, HIGH), (LOW, HIGH), (round(LOW, 3), 200), (0, round(HIGH, 5))]
)
def test_a_bound_that_is_the_extreme_is_noticed(pair: tuple[float, float]) -> None:
    found = warned(POINTS, bounds=[pair, (0, 200)])
    assert len(found) == sum(not is_round(side) for side in pair)
    assert all("column 0" in sentence and "private_bounds" in sentence for sentence in found)


def test_no_value_is_shown() -> None:
    (sentence,) = warned(POINTS, bounds=[(LOW, 200), (0, 200)])
    assert str(LOW)[:4] not in sentence
    assert "keep it to yourself" in sentence


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (float(POINTS[:, 0].mean() - 3 * POINTS[:, 0].std()), 200.0),
        (0.0, float(POINTS[:, 0].mean() + 2 * POINTS[:, 0].std(ddof=1))),
        (float(np.quantile(POINTS[:, 0], 0.01)), 200.0),
        (0.0, float(np.quantile(POINTS[:, 0], 0.975))),
    ],
)
def test_a_bound_that_is_another_statistic_is_noticed(low: float, high: float) -> None:
    (sentence,) = warned(POINTS, bounds=[(low, high), (0, 200)])
    assert "is a statistic of this batch" in sentence


@pytest.mark.parametrize(
    "pair",
    [(LOW - 0.01, 200), (LOW + 0.01, 200), (0, HIGH * 1.1), (float(np.sort(POINTS[:, 0])[1]), 200), (0, 200)],
)
def test_other_bounds_are_left_in_peace(pair: tuple[float, float]) -> None:
    assert warned(POINTS, bounds=[pair, (0, 200)]) == []


@pytest.mark.parametrize("pair", [(0, 255), (0, 65535), (-32768, 32767), (0, 1), (0, 1000)])
def test_round_bounds_that_touch_both_ends_are_normal(pair: tuple[float, float]) -> None:
    data = np.array([[pair[0], pair[0]], [pair[1], pair[1]]])
    assert warned(data, bounds=pair) == []


SPREAD = POINTS.std(axis=0)


@pytest.mark.parametrize(
    "bandwidth",
    [
        float(SPREAD[0]),
        float(SPREAD.mean()),
        float(POINTS.std()),
        float(POINTS.std(ddof=1)),
        float(POINTS[:, 1].std(ddof=1)),
        float(SPREAD[0] * 1000 ** (-1 / 6)),
        float(SPREAD[0] * (1000 * 4 / 4) ** (-1 / 6)),
        round(float(SPREAD[1]), 4),
        1.06 * float(SPREAD[0]) * 1000**-0.2,
    ],
)
def test_a_rule_of_thumb_is_noticed(bandwidth: float) -> None:
    (sentence,) = warned(POINTS, bandwidth=bandwidth)
    assert "bandwidth" in sentence
    assert "choose_kernel" in sentence


@pytest.mark.parametrize(
    "bandwidth", [float(SPREAD[0]) * 1.001, 1 / 3, 0.5, 2**0.5, round(float(SPREAD[0]), 2)]
)
def test_other_bandwidths_are_left_in_peace(bandwidth: float) -> None:
    assert warned(POINTS, bandwidth=bandwidth) == []


def test_one_record_has_no_spread() -> None:
    assert warned(POINTS[:1], bandwidth=0.123456) == []


def test_round_parameters_are_never_compared_with_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Basis, "declared_numbers", never)
    assert warned(POINTS, bandwidth=2.5, bounds=(0, 100)) == []


def test_a_warning_made_an_error_leaves_the_tally_as_it_was() -> None:
    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=5.0), rows=5, bounds=[(LOW, 200), (0, 200)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", SuspiciousParameter)
        with pytest.raises(SuspiciousParameter):
            tally.add(POINTS)
    assert tally.release(epsilon=1.0, relation="replace").count == 0


def test_the_release_does_not_know_of_the_warning() -> None:
    """The same bytes whether the owner was warned or not."""
    files = []
    for data in (POINTS, POINTS[POINTS[:, 0] > LOW]):
        tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=5.0), rows=2, bounds=[(LOW, 200), (0, 200)])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tally.add(data)
        stream = io.BytesIO()
        tally.release(epsilon=1.0, rows=2, insecure_noise_seed=1).save(stream)
        files.append((bool(caught), stream.getvalue().split(b"}")[0]))
    assert files[0] == (True, files[1][1])
    assert files[1][0] is False


def test_sets_and_codes_are_not_suspected() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hs.race(hs.JaccardKernel(), rows=5).add([[1, 2], [3]])
        hs.race(hs.HammingKernel(dim=2), rows=5).add([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, True),
        (-0.0, True),
        (1e300, True),
        (12.34, True),
        (12.345, False),
        (86400.0, True),
        (12347.0, False),
    ],
)
def test_what_counts_as_round(value: float, expected: bool) -> None:
    assert is_round(value) is expected


BOX = [(0.0, 1.0), (0.0, 10.0)]


@pytest.mark.parametrize(
    ("records", "warned"),
    [
        ([[0.5, 5.0]] * 40, False),
        ([[0.5, 50.0]] * 40, True),
        ([[0.5, 50.0]] * 21 + [[0.5, 5.0]] * 19, True),
        ([[0.5, 50.0]] * 20 + [[0.5, 5.0]] * 20, False),
        ([[0.0, 10.0]] * 40, False),
        ([[0.5, 50.0]] * 19, False),
        ([[5.0, 0.5]] * 9000, True),
    ],
    ids=["inside", "all outside", "most", "half", "on the bounds", "few records", "many records"],
)
def test_bounds_that_most_records_lie_outside_of(records: list[list[float]], warned: bool) -> None:
    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=2, width=10, bounds=BOX)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tally.add(np.array(records), allow_clipping=True)
    assert [each.category for each in caught] == [SuspiciousParameter] * warned
    with pytest.raises(DataRefused, match="most records") if warned else nullcontext() as refused:
        tally.add(np.array(records))
    assert "50" not in str(refused)
    assert all("most records of this batch lie outside" in str(each.message) for each in caught)
    assert all("50" not in str(each.message) for each in caught)


def test_warnings_look_at_the_columns_that_are_counted() -> None:
    """A frame may have them in another order, and others besides."""
    # The second bound has many digits, so the records are looked at.
    box = {"share": (0.0, 1.0), "age": (0.0, 117.31)}
    frame = pd.DataFrame({"name": ["a", "b"] * 20, "age": [60.0, 117.31] * 20, "share": 0.5})
    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=2, width=10, bounds=box)
    with pytest.warns(SuspiciousParameter, match="the high bound of column 'age'"):
        tally.add(frame)


TENTHS = np.round(np.random.default_rng(1).normal(50.0, 9.0, (300, 2)), 1)
"""As people record them: their extremes have three digits."""
EXTREMES = [(float(values.min()), float(values.max())) for values in TENTHS.T]
NAMED = pd.DataFrame(TENTHS, columns=["age", "weight"])
KERNEL = hs.GaussianKernel(dim=2, bandwidth=5.0)
READ_OFF = "the bounds of column {} are the smallest and the largest value of the records"


@pytest.mark.parametrize(
    "data",
    [TENTHS, TENTHS.tolist(), NAMED, pl.from_pandas(NAMED), pa.Table.from_pandas(NAMED)],
    ids=["array", "lists", "pandas", "polars", "arrow"],
)
@pytest.mark.parametrize("batches", [1, 30])
def test_bounds_that_are_the_minimum_and_the_maximum_are_noticed(data: Any, batches: int) -> None:
    tally = hs.grid(KERNEL, bounds=[EXTREMES[0], (0, 200)])
    size = -(-len(TENTHS) // batches)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(0, len(TENTHS), size):
            tally.add(data[start : start + size])
    (warning,) = caught
    assert READ_OFF.format("0") in str(warning.message)
    assert "keep it to yourself" in str(warning.message)
    assert not any(str(end) in str(warning.message) for end in EXTREMES[0])


@pytest.mark.parametrize(
    ("values", "pair"),
    [
        (np.linspace(0.0, 1.0, 60), (0, 1)),
        (np.linspace(0.0, 24.0, 70), (0, 24)),
        (np.linspace(-180.0, 180.0, 77), (-180, 180)),
        (np.linspace(0.0, 0.25, 77), (0, 0.25)),
        (np.arange(17.0, 91.0), (17, 90)),
        (np.tile([0.0, 1.0], 50), (0, 1)),
        (TENTHS[:, 0], (EXTREMES[0][0] - 0.1, EXTREMES[0][1])),
        (TENTHS[:, 0], (EXTREMES[0][0], EXTREMES[0][1] - 0.1)),
    ],
    ids=["share", "hour", "degrees", "quarter", "integers", "indicator", "one end", "clipped"],
)
def test_bounds_with_another_source_are_left_in_peace(values: Any, pair: tuple[float, float]) -> None:
    tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=pair[1] / 4), bounds=pair)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tally.add(values.reshape(-1, 1))


COLUMNS = {str(name): NumberColumn(*pair) for name, pair in zip(NAMED, EXTREMES, strict=True)}
SURFACES: dict[str, Any] = {
    "release": lambda: hs.release(NAMED, kernel=KERNEL, bounds=EXTREMES, epsilon=1.0),
    "mwem": lambda: hs.release(NAMED, kernel=KERNEL, bounds=EXTREMES, epsilon=1.0, method="mwem"),
    "landmarks": lambda: hs.release(NAMED, kernel=KERNEL, bounds=EXTREMES, epsilon=1.0, method="landmarks"),
    "combination": lambda: hs.release(
        NAMED, kernel=KERNEL + hs.GaussianKernel(dim=2, bandwidth=9.0), bounds=EXTREMES, epsilon=1.0
    ),
    "marginals": lambda: hs.methods.marginals(COLUMNS).add(NAMED),
    "synthesizer": lambda: hs.PrivateSynthesizer(columns=COLUMNS).fit(NAMED),
    "quantiles": lambda: hs.private_quantiles(NAMED, [0.5], bounds=EXTREMES, epsilon=1.0),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_they_are_noticed_wherever_records_and_bounds_meet(surface: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SURFACES[surface]()
    found = [str(each.message) for each in caught if each.category is SuspiciousParameter]
    assert len(found) == 2
    for name, sentence in zip(NAMED, sorted(found), strict=True):
        assert READ_OFF.format(repr(name)) in sentence


def test_served_functions_and_their_targets_are_compared_too() -> None:
    with pytest.warns(SuspiciousParameter, match=READ_OFF.format("0")):
        density_function(TENTHS[:, :1], hs.GaussianKernel(dim=1, bandwidth=5.0), bounds=EXTREMES[0])
    with pytest.warns(SuspiciousParameter, match="the bounds of the target are"):
        gaussian_process_function(
            TENTHS[:, :1],
            TENTHS[:, 1],
            hs.GaussianKernel(dim=1, bandwidth=5.0),
            bounds=(0, 100),
            target_bounds=EXTREMES[1],
            noise=1.0,
        )


def test_natural_ends() -> None:
    assert all(map(is_natural, (0.0, 1.0, -1.0, 0.5, 15.0, 200.0, 1e6, 255.0, 1023.0, 36.0, 360.0)))
    assert not any(map(is_natural, (4.3, 7.9, 87.0, 372.0, 123.0, 0.11)))
