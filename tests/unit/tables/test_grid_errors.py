"""The stated bound of a grid's error, against records where the error is largest."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused
from hushsum.kernels import Batch, ProfileKernel
from hushsum.releases import CoefficientFunction
from hushsum.tables import GridReading
from hushsum.tables._grid import _read
from tests.exact_tallies import exact_table
from tests.fuzz.mutate import joined, split
from tests.oracles.grid_weights import grid_weights

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("degree", [2, 3, 5])
@pytest.mark.parametrize(
    "kernel",
    [
        hs.GaussianKernel(1, 0.2),
        hs.GaussianKernel(2, 0.3),
        hs.GaussianKernel(3, 0.5),
        hs.LaplacianKernel(2, 0.4),
        hs.EuclideanKernel(1, 0.3),
        hs.EuclideanKernel(2, 0.4),
        hs.ManhattanKernel(1, 0.3),
        hs.MaternKernel(2, 0.4),
    ],
    ids=str,
)
@pytest.mark.parametrize("spacing", [0.3, 0.75, 1.0])
def test_no_heap_errs_by_more_than_the_bound(kernel: ProfileKernel, degree: int, spacing: float) -> None:
    """One value throughout, at 6 places; queries at the value, beside it and far from it."""
    rng = np.random.default_rng(2)
    for place in rng.uniform(-0.9, 0.9, (6, kernel.dim)):
        tally = hs.grid(kernel, bounds=(-1, 1), spacing=spacing, degree=degree).add([place] * 50)
        beside = place + rng.normal(0.0, 1.0, (20, kernel.dim)) * np.repeat([0.01, 0.1, 0.3, 1.0], 5)[:, None]
        queries = np.concatenate([[place], beside])
        reading = tally.reading
        assert isinstance(reading, GridReading)
        table, batch = exact_table(tally), reading.basis.prepare_queries(queries)
        errors = reading.evaluate(table, batch, threads=1) - kernel.exact_sum([place] * 50, queries)
        bound = reading.bias_bound(table, batch, 50.0, 0.0)
        # The reading of the bound has an error of its own, and pairs are sampled for kernels with a corner;
        # at the worst place in every column a Gaussian errs by √d times the stated error.
        most = 1.15 * np.sqrt(kernel.dim) if kernel.smooth else 1.15
        assert (np.abs(errors) <= most * bound + 1e-4).all(), (np.abs(errors) / bound).max()


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 50.0])
@pytest.mark.parametrize("spacing", [0.6, 1.0])
def test_intervals_hold_for_heaps_and_smooth_data(epsilon: float, spacing: float) -> None:
    """A third of the records at one value. Of 60 releases at 30 queries at least 90 % hold, and 80 % at every
    query: with intervals that hold at 95 %, 13 or more misses of 60 happen once in 10⁵.
    """
    smooth = RNG.normal(0.0, 0.3, (4000, 1)).clip(-1, 1)
    records = np.concatenate([smooth, np.full((2000, 1), 0.123)])
    kernel = hs.GaussianKernel(1, 0.05)
    tally = hs.grid(kernel, bounds=(-1, 1), spacing=spacing, degree=3).add(records)
    queries = np.concatenate([smooth[:20], np.full((10, 1), 0.123)])
    truth = kernel.exact_sum(records, queries) / len(records)
    held = []
    for seed in range(60):
        f = tally.release(epsilon=epsilon, insecure_noise_seed=seed)
        assert isinstance(f, CoefficientFunction)
        answers = f.query(queries)
        held.append((answers.lower <= truth) & (truth <= answers.upper))
    assert np.mean(held) > 0.9
    assert np.mean(held, axis=0).min() > 0.8


def test_without_noise_an_interval_contains_the_bound() -> None:
    f = hs.grid(hs.GaussianKernel(1, 0.1), bounds=(-1, 1)).add([[0.3]] * 500).release(epsilon=1e6)
    assert isinstance(f, CoefficientFunction)
    answers = f.query([[0.3]], of="sum")
    batch = f.basis.prepare_queries([[0.3]])
    bias = f.reading.bias_bound(f.table, batch, f.count, f.cell_variance)
    half = (answers.upper - answers.lower) / 2
    assert bias[0] < half[0] < 1.3 * bias[0]


@pytest.mark.parametrize(("dim", "degree"), [(1, 5), (2, 4), (3, 5), (4, 3), (4, 5)])
def test_the_typical_rounding_is_what_integer_weights_err(dim: int, degree: int) -> None:
    """The readings of 40 lone records against those of the same splines in double precision."""
    kernel = hs.GaussianKernel(dim, 0.3)
    tally = hs.grid(kernel, bounds=(-1, 1), spacing=0.75, degree=degree)
    reading = tally.reading
    assert isinstance(reading, GridReading)
    basis = reading.basis
    spacing = np.array(basis.spacing)
    errors = []
    for place in RNG.uniform(-0.5, 0.5, (40, dim)).astype(np.float32):
        nodes, weights = grid_weights(basis, place[None])
        table = np.zeros(basis.shape, np.int64)
        np.add.at(table.reshape(-1), nodes[0], weights[0])
        query = (place + RNG.normal(0.0, 0.2, dim)).astype(np.float32)
        read = reading.evaluate(table, Batch((query[None],), 1), threads=1)[0]
        inside = (place.astype(np.float64) / spacing + 0.5 * np.array(basis.cells)) % 1.0
        away = (query.astype(np.float64) - place) / spacing
        errors.append(read - _read(reading.reader.terms, inside[None], away[None])[0])
    measured = float(np.sqrt(np.mean(np.square(errors))))
    assert measured < reading.errors.roundings[1] < 6.0 * measured
    assert max(map(abs, errors)) < reading.errors.roundings[0]


def _file(kernel: ProfileKernel) -> tuple[CoefficientFunction, bytes]:
    records = RNG.uniform(-1, 1, (400, kernel.dim))
    f = hs.grid(kernel, bounds=(-1, 1)).add(records).release(epsilon=1.0, insecure_noise_seed=1)
    assert isinstance(f, CoefficientFunction)
    stream = io.BytesIO()
    f.save(stream)
    return f, stream.getvalue()


@pytest.mark.parametrize(
    "kernel",
    [
        hs.GaussianKernel(1, 0.2),
        hs.LaplacianKernel(2, 0.4),
        hs.EuclideanKernel(2, 0.4),
        hs.MaternKernel(1, 0.3),
        3.0 * hs.GaussianKernel(1, 0.3) - 0.5 * hs.ManhattanKernel(1, 0.4),
    ],
    ids=str,
)
def test_a_file_holds_the_constants_of_its_errors(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader fits no kernel and samples no pairs, and answers with the same error bars."""
    f, data = _file(kernel)
    queries = RNG.uniform(-1, 1, (9, kernel.dim))
    expected = f.query(queries)

    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("hushsum.tables._grid.profiles_of", never)
    monkeypatch.setattr("hushsum.tables._grid.ReadingErrors._sampled_bound", never)
    monkeypatch.setattr("hushsum.tables._grid.ReadingErrors._product_bound", never)
    g: Any = hs.load(io.BytesIO(data))
    found = g.query(queries)
    for name in ("value", "stderr", "lower", "upper", "bound"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    again = io.BytesIO()
    g.save(again)
    assert again.getvalue() == data


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bound", [1.0, 0.0, 0.0]),
        ("bound", [-1.0, 0.0, 0.0, 0.0]),
        ("bound", [1.0, 50.0, 0.0, 0.0]),
        ("typical", [1, 0.0, 0.0, 0.0]),
        ("profiles", []),
        ("profiles", [[1.0, [0.2], [True]]] * 129),
        ("profiles", [[1.0, [0.2, 0.2], [True]]]),
        ("profiles", [[1.0, [0.0], [True]]]),
        ("profiles", [[1.0, [1e9], [True]]]),
        ("profiles", [[1.0, [0.2], [1]]]),
        ("more", 1.0),
    ],
)
def test_constants_that_no_grid_has_are_refused(name: str, value: object) -> None:
    prefix, header, payload = split(_file(hs.GaussianKernel(1, 0.2))[1])
    about = json.loads(header)
    about["constants"][name] = value
    with pytest.raises(FileRefused):
        hs.load(io.BytesIO(joined(prefix, json.dumps(about, sort_keys=True).encode(), payload)))


def test_a_file_without_the_constants_of_its_grid_is_refused() -> None:
    prefix, header, payload = split(_file(hs.GaussianKernel(1, 0.2))[1])
    about = json.loads(header)
    del about["constants"]
    with pytest.raises(FileRefused):
        hs.load(io.BytesIO(joined(prefix, json.dumps(about, sort_keys=True).encode(), payload)))
