"""Products, powers, linear combinations and kernels of some columns: values, normal form, roles, files."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.kernels import (
    ColumnKernel,
    CombinationKernel,
    HashableCombination,
    HashableKernel,
    Kernel,
    ProductKernel,
    ProfileKernel,
    SpectralKernel,
    kernel_as_json,
    kernel_from_json,
)

RNG = np.random.default_rng(5)
NUMBERS = RNG.normal(size=(30, 2))
CODES = RNG.integers(0, 3, (30, 1))
SETS = [RNG.integers(0, 6, RNG.integers(0, 4)).tolist() for _ in range(30)]
NEAR, SAME, ALIKE = hs.EuclideanKernel(dim=2, bandwidth=1.5), hs.HammingKernel(dim=1), hs.JaccardKernel()
MIXED = (
    hs.kernels.on_columns(NEAR, ["x", "y"], of=["x", "town", "y", "tags"])
    * hs.kernels.on_columns(SAME, "town", of=["x", "town", "y", "tags"])
    * hs.kernels.on_columns(ALIKE, "tags", of=["x", "town", "y", "tags"])
)
FRAME = pd.DataFrame(
    {"x": NUMBERS[:, 0], "town": CODES[:, 0], "y": NUMBERS[:, 1], "tags": pd.Series(SETS, dtype=object)}
)
GAUSS, LAPLACE = hs.GaussianKernel(dim=1, bandwidth=0.5), hs.LaplacianKernel(dim=1, bandwidth=2.0)
BOTH = hs.kernels.on_columns(GAUSS, 0, of=2) * hs.kernels.on_columns(LAPLACE, 1, of=2)
COMPOSED = [
    MIXED,
    BOTH,
    1.5 * NEAR - 0.5 * NEAR**3,
    0.25 * MIXED + 0.75 * hs.kernels.on_columns(SAME, 1, of=4),
    ALIKE - 2.0 * ALIKE**2,
    0.5 * hs.GaussianKernel(2, 1.0) + 0.5 * BOTH,
]


def in_roles(kernel: Kernel) -> set[str]:
    roles = (HashableKernel, HashableCombination, ColumnKernel, SpectralKernel, ProfileKernel)
    return {role.__name__ for role in roles if isinstance(kernel, role)}


def test_a_product_is_the_product_of_its_factors_on_their_columns() -> None:
    rows = list(zip(NUMBERS[:, 0], CODES[:, 0].tolist(), NUMBERS[:, 1], SETS, strict=True))
    expected = (
        NEAR.similarity(NUMBERS, NUMBERS) * SAME.similarity(CODES, CODES) * ALIKE.similarity(SETS, SETS)
    )
    table = pa.table({"x": NUMBERS[:, 0], "town": CODES[:, 0], "y": NUMBERS[:, 1], "tags": SETS})
    for records in ([list(row) for row in rows], FRAME, table):
        np.testing.assert_array_equal(MIXED.similarity(records, records), expected)
    np.testing.assert_allclose(MIXED.exact_sum(FRAME, FRAME), expected.sum(axis=0))


def test_columns_are_found_by_name_in_any_order() -> None:
    basis = hs.race(MIXED, rows=20, columns=["x", "town", "y", "tags"]).basis
    turned = FRAME[["tags", "y", "town", "x"]]
    for one, other in zip(basis.prepare(FRAME).arrays, basis.prepare(turned).arrays, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(UsageError, match="name columns"):
        basis.prepare(FRAME.drop(columns="town"))


def test_a_combination_is_the_sum_of_its_components() -> None:
    kernel = 1.5 * NEAR - 0.5 * NEAR**3
    similar = NEAR.similarity(NUMBERS, NUMBERS)
    np.testing.assert_allclose(kernel.similarity(NUMBERS, NUMBERS), 1.5 * similar - 0.5 * similar**3)
    assert kernel.signed
    assert not (0.5 * NEAR + 2.0 * NEAR**2).signed


def test_kernels_have_one_form() -> None:
    other = hs.ManhattanKernel(dim=2, bandwidth=1.0)
    assert NEAR * NEAR == NEAR**2 == hs.EuclideanKernel(dim=2, bandwidth=1.5, power=2)
    assert NEAR * other == other * NEAR
    assert NEAR**2 * other * NEAR == NEAR * other * NEAR**2
    assert 0.5 * NEAR + 0.5 * NEAR == NEAR
    assert sum([NEAR, other]) == NEAR + other
    assert (NEAR + other) * (NEAR - other) == NEAR**2 - other**2
    assert (NEAR + other) ** 3 == (NEAR + other) * (NEAR + other) * (NEAR + other)
    negative = -NEAR
    assert -negative == NEAR
    assert hs.kernels.on_columns(NEAR, [0, 1], of=2) == NEAR
    assert hs.kernels.on_columns(NEAR * other, [2, 0], of=3) == hs.kernels.on_columns(
        NEAR, [2, 0], of=3
    ) * hs.kernels.on_columns(other, [2, 0], of=3)
    assert hs.JaccardKernel(power=2) == ALIKE * ALIKE


def test_roles_are_those_that_the_parts_share() -> None:
    numbers = {"ColumnKernel", "ProfileKernel"}
    assert in_roles(MIXED) == {"HashableKernel"}
    assert in_roles(BOTH) == {*numbers, "SpectralKernel"}
    assert in_roles(hs.kernels.on_columns(NEAR, [0, 1], of=3)) == {"HashableKernel", "ColumnKernel"}
    assert in_roles(
        hs.kernels.on_columns(NEAR, [0, 1], of=4) * hs.kernels.on_columns(NEAR, [3, 2], of=4)
    ) == {*numbers, "HashableKernel"}
    assert in_roles(2.0 * NEAR) == {*numbers, "HashableCombination"}
    assert in_roles(0.3 * GAUSS + 0.7 * LAPLACE) == {*numbers, "SpectralKernel"}
    assert in_roles(0.3 * GAUSS - 0.7 * LAPLACE) == numbers
    assert in_roles(GAUSS * hs.HammingKernel(1)) == set()


@pytest.mark.parametrize("kernel", COMPOSED, ids=str)
def test_files_and_pickles_bring_the_same_kernel_back(kernel: Kernel) -> None:
    stored = json.loads(json.dumps(kernel_as_json(kernel)))
    for back in (kernel_from_json(stored), pickle.loads(pickle.dumps(kernel))):
        assert back == kernel
        assert type(back) is type(kernel)
        assert hash(back) == hash(kernel)
    assert eval(repr(kernel), {**vars(hs), "on_columns": hs.kernels.on_columns}) == kernel


def test_a_description_that_is_not_the_normal_form_is_refused() -> None:
    product: Any = kernel_as_json(MIXED)
    product["parameters"]["factors"].reverse()
    nested: Any = {
        "name": "product",
        "parameters": {"dim": 4, "factors": [{"kernel": product, "columns": [0]}]},
    }
    alone: Any = kernel_as_json(2.0 * NEAR)
    alone["parameters"]["components"][0]["weight"] = 1.0
    within: Any = {"name": "combination", "parameters": {"components": [{"weight": 2.0, "kernel": alone}]}}
    empty: Any = {"name": "product", "parameters": {"dim": 2, "factors": []}}
    large: Any = kernel_as_json(BOTH)
    large["parameters"]["dim"] = 1 << 40
    with pytest.raises(UsageError, match="1048576"):
        kernel_from_json(large)
    for each in (product, nested, alone, within, empty):
        with pytest.raises(ValueError, match=r"factor|component|description"):
            kernel_from_json(each)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: NEAR * hs.EuclideanKernel(dim=3, bandwidth=1.0), "same number of columns"),
        (lambda: NEAR + ALIKE, "same number of columns"),
        (lambda: hs.kernels.on_columns(NEAR, [0], of=3), "2 different columns"),
        (lambda: hs.kernels.on_columns(NEAR, [0, 0], of=3), "2 different columns"),
        (lambda: hs.kernels.on_columns(NEAR, [0, 3], of=3), "positions from 0 to 2"),
        (lambda: hs.kernels.on_columns(NEAR, ["a", "z"], of=["a", "b"]), "names of columns"),
        (lambda: NEAR - NEAR, "must not be zero"),
        (lambda: NEAR * float("nan"), "finite number"),
        (lambda: NEAR**0, "power"),
        (lambda: (NEAR + hs.ManhattanKernel(2, 1.0) + hs.AngularKernel(2)) ** 11, "at most 64"),
        (lambda: hs.race(MIXED, bounds=(0, 1)), "bounds"),
        (lambda: hs.race(NEAR - NEAR**2, rows=3), "at least 4"),
        (lambda: hs.race(GAUSS * SAME), "collision probability"),
    ],
)
def test_what_cannot_be_joined_is_refused(make: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make()


@pytest.mark.parametrize("records", [[[1.0, 2, 3.0]], [[1.0, 2, 3.0, [1]], [2.0]], [], "file.csv"])
def test_records_of_another_shape_are_refused(records: Any) -> None:
    with pytest.raises(DataRefused):
        MIXED.prepare(records)


def test_spectral_products_and_mixtures_have_the_right_frequencies() -> None:
    """Means of 200,000 cosines, each with a standard deviation below 0.71: six of them are 0.0095."""
    mixture = 0.25 * GAUSS + 0.75 * LAPLACE
    for kernel, at in ((BOTH, [[0.3, 1.0], [0.0, -2.0]]), (mixture, [[0.4], [3.0]])):
        assert isinstance(kernel, SpectralKernel)
        waves = kernel.frequencies(rows=200_000, seed=3, orthogonal=True).astype(np.float64)
        found = np.cos(2.0 * np.pi * waves @ np.array(at).T).mean(axis=0)
        expected = kernel.similarity(np.zeros((1, kernel.dim)), at)[0]
        np.testing.assert_allclose(found, expected, atol=0.0095)
        few = kernel.frequencies(rows=100, seed=3, orthogonal=True)
        np.testing.assert_array_equal(few, waves[:100].astype(np.float32))


def test_a_grid_reads_products_and_combinations() -> None:
    X = RNG.uniform(0.0, 1.0, (2000, 2)) * [1.0, 40.0]
    narrow = hs.kernels.on_columns(hs.GaussianKernel(1, 0.1), 0, of=2) * hs.kernels.on_columns(
        hs.GaussianKernel(1, 4.0), 1, of=2
    )
    for kernel in (
        narrow,
        2.0 * narrow
        - 0.5
        * hs.kernels.on_columns(hs.GaussianKernel(1, 0.2), 0, of=2)
        * hs.kernels.on_columns(hs.GaussianKernel(1, 8.0), 1, of=2),
    ):
        tally = hs.grid(kernel, bounds=[(0, 1), (0, 40)])
        nodes = tally.basis.nodes  # type: ignore[attr-defined]
        assert abs(nodes[0] - nodes[1]) <= 1, "spacing follows the width of each column"
        f = tally.add(X).release(epsilon=1e4)
        exact = kernel.exact_sum(X, X[:20]) / 2000
        np.testing.assert_allclose(f(X[:20]), exact, atol=0.01)


def test_parts_are_values() -> None:
    assert isinstance(MIXED, ProductKernel)
    assert [each.columns for each in MIXED.factors] == [(0, 2), (1,), (3,)]
    kernel = 2.0 * NEAR + NEAR**2
    assert isinstance(kernel, CombinationKernel)
    assert [each.weight for each in kernel.components] == [2.0, 1.0]
    with pytest.raises(AttributeError):
        MIXED.dim = 3  # type: ignore[misc]
