"""Cells of a box: where records fall, and the way back to the units of the data."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushsum.errors import UsageError
from hushsum.records import Bounds, CellGrid, as_dense, bins_for_bandwidth

BOX = Bounds((0.0, -1.0), (10.0, 1.0))
GRID = CellGrid.of(BOX, [5, 4])


def codes_of(rows: Any) -> Any:
    return GRID.codes(as_dense(rows, dim=2, bounds=BOX))


def test_every_middle_falls_into_its_own_cell() -> None:
    assert GRID.flat(codes_of(GRID.centres())).tolist() == list(range(20))
    assert GRID.width.tolist() == [2.0, 0.5]


def test_edges_belong_to_the_upper_cell_and_the_last_edge_to_the_last() -> None:
    assert codes_of([[0.0, -1.0], [2.0, 0.0], [10.0, 1.0], [99.0, -99.0]]).tolist() == [
        [0, 0],
        [1, 2],
        [4, 3],
        [4, 0],
    ]


def test_counts_are_those_of_a_loop() -> None:
    rows = np.random.default_rng(0).uniform([-1, -2], [11, 2], (400, 2))
    counts = GRID.count(as_dense(rows, dim=2, bounds=BOX)).reshape(5, 4)
    clipped = np.clip(rows, [0.0, -1.0], [10.0, 1.0])
    for i, j in product(range(5), range(4)):
        inside = (np.minimum(clipped[:, 0] // 2, 4) == i) & (np.minimum((clipped[:, 1] + 1) // 0.5, 3) == j)
        assert counts[i, j] == inside.sum()


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=1, max_size=30), st.data())
def test_a_record_s_cell_depends_on_that_record_alone(rows: list[tuple[float, float]], data: Any) -> None:
    together = codes_of(rows)
    i = data.draw(st.integers(0, len(rows) - 1))
    assert together[i].tolist() == codes_of([rows[i]])[0].tolist()


def test_places_are_inside_their_cells() -> None:
    codes = np.array([[0, 3], [4, 0]])
    assert GRID.places(codes, 0.5).tolist() == [[1.0, 0.75], [9.0, -0.75]]
    corner = GRID.places(codes, np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert corner.tolist() == [[0.0, 1.0], [10.0, -1.0]]


@pytest.mark.parametrize("bins", [0, -1, True, 1.5, [2], [2, 2, 2], ["a", 2], 1 << 21])
def test_refuses_bins_that_are_none(bins: Any) -> None:
    with pytest.raises(UsageError, match="bins must"):
        CellGrid.of(BOX, bins)


def test_refuses_more_cells_than_allowed() -> None:
    with pytest.raises(UsageError, match="at most 99 cells"):
        CellGrid.of(BOX, 10, most_cells=99)
    assert CellGrid.of(BOX, 10, most_cells=100).cells == 100


@pytest.mark.parametrize("most", [1, 7, 1000, 1 << 18])
@pytest.mark.parametrize("bandwidth", [0.01, 1.0, 100.0])
def test_default_bins_are_as_wide_as_requested_or_as_many_as_fit(bandwidth: float, most: int) -> None:
    bins = bins_for_bandwidth(BOX, [bandwidth] * BOX.dim, fraction=0.5, most_cells=most)
    assert 1 <= bins[0] * bins[1] <= most
    expected = [np.ceil(10.0 / (0.5 * bandwidth)), np.ceil(2.0 / (0.5 * bandwidth))]
    if expected[0] * expected[1] <= most:
        assert bins == expected
    elif most >= 1000:
        assert bins[0] * bins[1] > 0.5 * most
