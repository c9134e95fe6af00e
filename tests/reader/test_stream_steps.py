"""The change between two steps of a stream, as the reader for web pages computes it, against Python."""

from __future__ import annotations

import io
from base64 import b64encode
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.records import Batch
from hushsum.streams import step_covariance
from tests.reader.node import answered

LINE = np.random.default_rng(1).normal(5.0, 1.0, size=(400, 1))
QUERIES = [[4.0], [5.5], [8.0]]


def _grid() -> hs.Tally:
    return hs.grid(hs.GaussianKernel(1, 1.0), bounds=(0, 10))


def _persons() -> hs.Tally:
    return hs.grid(hs.GaussianKernel(1, 1.0), bounds=(0, 10), max_per_unit=2)


def _rows() -> hs.Tally:
    return hs.race(hs.EuclideanKernel(1, 1.0), rows=60, width=40, bounds=(0, 10))


STREAMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "all steps": (_grid, {"horizon": 30, "epsilon": 1.0, "delta": 1e-6}),
    "a window": (_grid, {"horizon": 30, "rho": 0.5, "window": 2}),
    "decay": (_grid, {"horizon": 30, "rho": 0.5, "decay": 0.9}),
    "pure epsilon": (_grid, {"horizon": 30, "epsilon": 1.0}),
    "pure epsilon, a window": (_grid, {"horizon": 30, "epsilon": 1.0, "window": 3}),
    "pure epsilon, decay": (_grid, {"horizon": 30, "epsilon": 1.0, "decay": 0.9}),
    "endless": (_grid, {"horizon": None, "rho": 0.5}),
    "endless, persons": (_persons, {"horizon": None, "rho": 0.5}),
    "endless, a window": (_grid, {"horizon": None, "rho": 0.5, "window": 3}),
    "endless, decay": (_grid, {"horizon": None, "epsilon": 1.0, "delta": 1e-6, "decay": 0.9}),
    "endless, pure epsilon": (_grid, {"horizon": None, "epsilon": 1.0}),
    "one step": (_grid, {"horizon": 1, "rho": 0.5}),
    "hash rows": (_rows, {"horizon": 12, "rho": 0.5}),
}


def _bytes(released: Any) -> str:
    stream = io.BytesIO()
    released.save(stream)
    return b64encode(stream.getvalue()).decode()


@pytest.fixture(scope="module")
def films() -> dict[str, list[Any]]:
    made = {}
    for name, (tally, terms) in STREAMS.items():
        stream = hs.stream(tally(), insecure_noise_seed=5, **terms)
        number = min(6, terms["horizon"] or 6)
        units = [str(i) for i in range(60)] if "persons" in name else None
        made[name] = [stream.add(LINE[60 * t : 60 * t + 60], units=units).step() for t in range(number)]
    return made


def test_covariances_and_changes_are_those_of_python(films: dict[str, list[Any]]) -> None:
    pairs = [
        (name, films[name][first], films[name][second])
        for name in films
        for first, second in ((0, 0), (0, -1), (-2 if len(films[name]) > 1 else 0, -1))
    ]
    requests = [
        {"base64": _bytes(after), "since": _bytes(before), "queries": QUERIES, "of": "sum"}
        for _, before, after in pairs
    ]
    for (name, before, after), found in zip(pairs, answered(requests), strict=True):
        both = step_covariance(before, after)
        assert found["covariance"]["cell"] == pytest.approx(both.cell, rel=1e-9), name
        assert found["covariance"]["count"] == pytest.approx(both.count, rel=1e-9), name
        expected = after.query(QUERIES, of="sum").value - before.query(QUERIES, of="sum").value
        if name == "hash rows":
            # The number of records, which corrects for cells that several values share, is estimated for the
            # change alone, so that a small part of the noise differs.
            np.testing.assert_allclose(found["change"]["value"], expected, atol=2.0)
            continue
        np.testing.assert_allclose(found["change"]["value"], expected, rtol=1e-9, atol=1e-9 * 400)
        cell = max(before.cell_variance + after.cell_variance - 2 * both.cell, 0.0)
        batch = Batch((np.asarray(QUERIES, np.float32) - 5.0,), len(QUERIES))
        noise = cell * after.reading.noise_gain(batch)
        # Beside the noise there is the approximation error of the change, which is small.
        square = np.square(found["change"]["stderr"])
        assert (square >= (1 - 1e-6) * noise).all(), name
        assert (square <= 1.1 * noise + 1e-3).all(), name


def test_the_error_of_a_change_is_that_of_many_streams() -> None:
    """Where nothing changes, changes scatter as their standard errors say: 60 streams, three points each; the
    mean square is within 0.55 and 1.6 but for 1 in 10⁶ samples of a right error, and fixed seeds.
    """
    requests = []
    for seed in range(60):
        stream = hs.stream(_grid(), horizon=30, rho=0.5, insecure_noise_seed=1000 + seed)
        before = stream.add(LINE).step()
        stream.step()
        requests.append({"base64": _bytes(stream.step()), "since": _bytes(before), "queries": QUERIES})
    found = [each["change"] for each in answered(requests)]
    scores = np.array([each["value"] for each in found]) / np.array([each["stderr"] for each in found])
    assert 0.55 < np.mean(scores**2) < 1.6


def test_steps_of_different_streams_have_no_change(films: dict[str, list[Any]]) -> None:
    before, after = films["all steps"][0], films["decay"][1]
    with pytest.raises(UsageError):
        step_covariance(before, after)
    (found,) = answered([{"base64": _bytes(after), "since": _bytes(before), "queries": QUERIES}])
    assert "QueryRefused" in found["threw"]
