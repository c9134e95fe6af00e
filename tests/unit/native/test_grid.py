"""Records counted on a grid, and sums over the nodes near a query, against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from hushsum import _native
from hushsum._types import Floats
from hushsum.kernels import Batch
from hushsum.records import Bounds
from hushsum.tables import GridWeights
from tests.oracles.grid_weights import grid_weights

DEGREES = [each for dim in (1, 2) for each in itertools.product((0, 2, 3, 5), repeat=dim)]
DEGREES += [(3, 3, 3), (5, 0, 2), (2, 3, 0, 5), (4, 4, 4, 4)]


def _basis(degrees: tuple[int, ...]) -> GridWeights:
    dim = len(degrees)
    bounds = Bounds(tuple(-1.0 - i for i in range(dim)), tuple(2.0 + i for i in range(dim)))
    return GridWeights(tuple(5 + i for i in range(dim)), bounds, degrees)


def _records(basis: GridWeights, many: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Anywhere in the box, on nodes, between them and at both ends."""
    rng = np.random.default_rng(many)
    low, high = np.array(basis.bounds.low), np.array(basis.bounds.high)
    inside = rng.uniform(low, high, (many, len(low)))
    halves = low + np.round((inside - low) / basis.spacing * 2) / 2 * basis.spacing
    rows = np.concatenate([inside, halves, [low], [high]])
    return basis.prepare(rows).arrays[0]


@pytest.mark.parametrize("degrees", DEGREES, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
def test_counting_adds_the_weights_of_the_oracle(degrees: tuple[int, ...], threads: int) -> None:
    basis = _basis(degrees)
    rows = _records(basis, 5000)
    table = np.full(basis.shape, 9, np.int64)
    basis.accumulate(table, Batch((rows,), len(rows)), step=1, threads=threads)
    expected = np.zeros(table.size, np.int64)
    nodes, weights = grid_weights(basis, rows)
    np.add.at(expected, nodes.reshape(-1), weights.reshape(-1))
    np.testing.assert_array_equal(table.reshape(-1) - 9, expected)
    basis.accumulate(table, Batch((rows,), len(rows)), step=-1, threads=1)
    assert (table == 9).all()


def _window(steps: int, reach: int, rng: np.random.Generator) -> Floats:
    return rng.normal(size=(steps + 1, 2 * reach))


def _coefficients(nodes: int, rows: Floats, along: float) -> Floats:
    """The coefficients of all nodes for one query."""
    steps, reach = len(rows) - 1, rows.shape[1] // 2
    before = int(np.floor(along))
    place = (along - before) * steps
    left = min(int(place), steps - 1)
    values = rows[left] + (place - left) * (rows[left + 1] - rows[left])
    found = np.zeros(nodes)
    for j in range(2 * reach):
        if 0 <= (node := before + 1 - reach + j) < nodes:
            found[node] = values[j]
    return found


@pytest.mark.parametrize("sizes", [(40,), (9, 31), (7, 5, 8), (3, 6, 4, 5)], ids=str)
@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_windows_are_sums_over_the_nodes(sizes: tuple[int, ...], count: int, kind: type[Any]) -> None:
    """Also of queries outside the grid, and so far outside that no node is near."""
    rng = np.random.default_rng(len(sizes))
    windows = [(nodes, _window(8, 1 + 2 * c, rng)) for c, nodes in enumerate(sizes)]
    table = rng.integers(-1000, 1000, sizes).astype(kind)
    along = rng.uniform(-6.0, np.array(sizes) + 6.0, (count, len(sizes)))
    along[-1] = 1e30 if count > 1 else along[-1]
    sums, squares, totals, lengths = [], [], [], []
    for query in along:
        product = np.ones(1)
        for (nodes, rows), place in zip(windows, query, strict=True):
            product = np.multiply.outer(product, _coefficients(nodes, rows, float(place))).reshape(-1)
        sums.append(product @ table.reshape(-1))
        squares.append(product @ np.square(table.reshape(-1).astype(np.float64)))
        totals.append(product.sum())
        lengths.append(product @ product)
    flat = table.reshape(-1)
    for threads in (1, 2):
        found = _native.sum_windows(flat, windows, along, False, threads)
        np.testing.assert_allclose(found, sums, rtol=1e-10, atol=1e-6)
        found = _native.sum_windows(flat, windows, along, True, threads)
        np.testing.assert_allclose(found, squares, rtol=1e-10, atol=1e-3)
        found = _native.sum_coefficients(windows, along, False, threads)
        np.testing.assert_allclose(found, totals, rtol=1e-10, atol=1e-9)
        found = _native.sum_coefficients(windows, along, True, threads)
        np.testing.assert_allclose(found, lengths, rtol=1e-10, atol=1e-12)


def test_an_answer_does_not_depend_on_the_other_queries_or_threads() -> None:
    rng = np.random.default_rng(4)
    windows = [(50, _window(16, 7, rng)), (60, _window(16, 5, rng))]
    table = rng.integers(-(10**6), 10**6, 3000)
    along = rng.uniform(0, 50, (500, 2))
    whole = _native.sum_windows(table, windows, along, False, 3)
    alone = [_native.sum_windows(table, windows, along[i : i + 1], False, 1)[0] for i in range(500)]
    np.testing.assert_array_equal(whole, alone)


def test_a_number_that_no_record_has_stays_in_the_table() -> None:
    rows = np.array([[np.nan, np.inf], [-np.inf, np.nan]], np.float32)
    for parts in (None, PARTS):
        table = np.zeros(25, np.int64)
        _native.count_on_grid(rows, table, [(4, 1.0, parts)] * 2, 1 << 10, 1 << 20, 1, 1)
        assert table.sum() == 2 << 20


PARTS = np.full((4, 2), 1 << 9, np.int32)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"step": 2}, "step must be"),
        ({"threads": 0}, "threads must be"),
        ({"axes": []}, "1 to 4 columns"),
        ({"axes": [(4, 1.0, None)] * 5}, "1 to 4 columns"),
        ({"axes": [(0, 1.0, None)] * 2}, "must be positive"),
        ({"axes": [(4, -1.0, None)] * 2}, "must be positive"),
        ({"axes": [(4, 1.0, PARTS[:, :1]), (4, 1.0, None)]}, "parts"),
        ({"axes": [(4, 1.0, PARTS + 1), (4, 1.0, None)]}, "sum to the declared number"),
        ({"whole": 3 << 9}, "differ by a power of 2"),
        ({"table": np.zeros(24, np.int64)}, "table must be"),
        ({"records": np.zeros((3, 1), np.float32)}, "records must be"),
    ],
)
def test_what_would_leave_the_table_is_refused(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "records": np.zeros((3, 2), np.float32),
        "table": np.zeros(25, np.int64),
        "axes": [(4, 1.0, PARTS), (4, 1.0, None)],
        "part": 1 << 10,
        "whole": 1 << 10,
        "step": 1,
        "threads": 1,
    }
    _native.count_on_grid(**given)
    with pytest.raises(ValueError, match=message):
        _native.count_on_grid(**given | changed)


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ([], "1 to 4 columns"),
        ([(0, np.ones((3, 4)))], "must be positive"),
        ([(5, np.ones((1, 4)))], "at least 2 places"),
        ([(5, np.ones((3, 3)))], "even number"),
        ([(6, np.ones((3, 4)))], "table must be"),
    ],
)
def test_windows_that_do_not_suit_the_table_are_refused(
    windows: list[tuple[int, Floats]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _native.sum_windows(np.ones(5, np.int64), windows, np.zeros((2, len(windows) or 1)), False, 1)
