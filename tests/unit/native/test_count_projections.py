"""Dense projections against the oracle, bit for bit."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from hushsum import _native
from tests.oracles.hashing import Projections, fused_multiply_add, tally


def rounded_to_float32(exact: Fraction) -> np.float32:
    """The float32 nearest to a normal-range rational, ties to even."""
    if exact == 0:
        return np.float32(0)
    exponent = math.floor(math.log2(abs(exact))) - 23
    unit = Fraction(2) ** exponent
    while abs(exact) / unit >= 2**24:
        unit *= 2
    while abs(exact) / unit < 2**23:
        unit /= 2
    return np.float32(float(round(exact / unit) * unit))


def test_the_oracle_rounds_once() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 4000)).astype(np.float32)
    # Addends at all distances from the product, some of them exact ties of a sum rounded to float64 first.
    c = (a * b * np.exp2(rng.integers(-40, 40, 4000))).astype(np.float32)
    a[:4], b[:4] = np.float32(1 + 2**-23), np.float32(1 + 2**-23)
    c[:4] = [2**24, -(2**24), 2.0**-30, 2**25]
    got = fused_multiply_add(a, b, c)
    for x, y, z, value in zip(a.tolist(), b.tolist(), c.tolist(), got, strict=True):
        assert value == rounded_to_float32(Fraction(x) * Fraction(y) + Fraction(z))


def test_a_projection_is_rounded_once() -> None:
    # The exact sum 2^24 + 2^13 + 1 + 2^-30 lies just above a tie of float32. An unfused product, or a sum
    # that passes through float64, loses the last term and rounds the tie down to even.
    factor = np.array([2**12 + 1], np.float32)
    offset = np.array([2.0**-30], np.float32)
    assert fused_multiply_add(factor, factor, offset)[0] == 2**24 + 2**13 + 2
    native = _native.ProjectionHasher(
        weights=factor.reshape(1, 1, 1),
        offsets=offset.reshape(1, 1),
        multipliers=np.array([[2**34]], np.uint64),  # with a width of 2^30 the cell is the word itself
        addends=np.zeros(1, np.uint64),
        width=2**30,
        signs=False,
        fold=True,
    )
    assert native.cells(np.repeat(factor[:, None], 30, axis=0), 1).tolist() == [[2**24 + 2**13 + 2]] * 30


@pytest.mark.parametrize("count", [*range(1, 21), 61])
def test_cells_of_every_record_tail(count: int) -> None:
    family = Projections.draw(seed=count, rows=37, power=1, dim=5, width=1000)
    records = np.random.default_rng(count).standard_normal((count, 5)).astype(np.float32) * 3
    np.testing.assert_array_equal(family.native().cells(records, 37), family.cells(records))


@pytest.mark.parametrize("dim", range(1, 41))
def test_cells_of_every_dimension(dim: int) -> None:
    family = Projections.draw(seed=dim, rows=40, power=1, dim=dim, width=257)
    records = np.random.default_rng(dim).standard_normal((26, dim)).astype(np.float32) * 3
    np.testing.assert_array_equal(family.native().cells(records, 40), family.cells(records))


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 31, 32, 33, 64, 100, 129, 200])
def test_cells_of_every_row_tail(rows: int) -> None:
    family = Projections.draw(seed=rows, rows=rows, power=1, dim=4, width=50)
    records = np.random.default_rng(rows).standard_normal((15, 4)).astype(np.float32) * 9
    np.testing.assert_array_equal(family.native().cells(records, rows), family.cells(records))


@pytest.mark.parametrize("power", [2, 3, 7])
def test_cells_of_concatenated_floors(power: int) -> None:
    family = Projections.draw(seed=power, rows=35, power=power, dim=6, width=1009)
    records = np.random.default_rng(power).standard_normal((25, 6)).astype(np.float32)
    np.testing.assert_array_equal(family.native().cells(records, 35), family.cells(records))


@pytest.mark.parametrize("power", [1, 5, 31, 32, 33, 64, 70])
def test_cells_of_signs(power: int) -> None:
    family = Projections.draw(seed=power, rows=35, power=power, dim=6, width=1009, signs=True)
    records = np.random.default_rng(power).standard_normal((25, 6)).astype(np.float32)
    np.testing.assert_array_equal(family.native().cells(records, 35), family.cells(records))


@pytest.mark.parametrize("power", [1, 6])
def test_signs_that_fit_the_width_are_the_cell(power: int) -> None:
    family = Projections.draw(seed=power, rows=35, power=power, dim=6, width=64, signs=True, fold=False)
    records = np.random.default_rng(power).standard_normal((25, 6)).astype(np.float32)
    records[0] = 0
    cells = family.native().cells(records, 35)
    np.testing.assert_array_equal(cells, family.cells(records))
    assert (cells[0] == 2**power - 1).all()


@pytest.mark.parametrize("signs", [False, True])
def test_huge_values_are_clamped(signs: bool) -> None:
    family = Projections.draw(seed=3, rows=64, power=2, dim=3, width=1000, signs=signs)
    largest = np.finfo(np.float32).max
    # Products overflow to infinities, and infinities of both signs to NaN.
    records = np.array(
        [[largest, largest, largest], [-largest, largest, 1], [1e30, -1e30, 0], [2.0**30, 0, 0]], np.float32
    )
    with np.errstate(over="ignore"):
        records = np.concatenate([records, records * np.float32(0.999)])
    np.testing.assert_array_equal(family.native().cells(records, 64), family.cells(records))


def test_the_first_rows_alone() -> None:
    family = Projections.draw(seed=5, rows=70, power=1, dim=3, width=1000)
    records = np.random.default_rng(5).standard_normal((9, 3)).astype(np.float32)
    native = family.native()
    for rows in (0, 1, 16, 33, 70):
        np.testing.assert_array_equal(native.cells(records, rows), family.cells(records)[:, :rows])


def test_counts_go_up_and_down_again() -> None:
    family = Projections.draw(seed=6, rows=50, power=1, dim=3, width=40)
    records = np.random.default_rng(6).standard_normal((300, 3)).astype(np.float32)
    native = family.native()
    table = np.zeros((50, 40), np.int64)
    native.count(records, table, 1, 1)
    np.testing.assert_array_equal(table, tally(family.cells(records), 40))
    native.count(records[:100], table, -1, 1)
    np.testing.assert_array_equal(table, tally(family.cells(records[100:]), 40))


def test_properties() -> None:
    native = Projections.draw(seed=5, rows=70, power=2, dim=3, width=1000).native()
    assert (native.rows, native.dim, native.width) == (70, 3, 1000)


@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("width", [7, 1000, 1 << 16])
def test_scattered_words_are_folded_as_the_oracle_does(power: int, width: int) -> None:
    family = replace(Projections.draw(seed=5, rows=70, power=power, dim=3, width=width), scattered=True)
    records = np.random.default_rng(6).standard_normal((61, 3)).astype(np.float32) * 50
    cells = family.cells(records)
    np.testing.assert_array_equal(family.native().cells(records, 70), cells)
    assert (cells != replace(family, scattered=False).cells(records)).any()
    table = np.zeros((70, width), np.int64)
    family.native().count(records, table, 1, 1)
    np.testing.assert_array_equal(table, tally(cells, width))
