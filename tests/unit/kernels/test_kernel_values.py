"""Kernels as values: parameters that break a rule are refused, files bring the same kernel back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused, UsageError
from hushsum.kernels import (
    Batch,
    HashableKernel,
    Kernel,
    kernel_as_json,
    kernel_from_json,
    kernel_names,
    named,
)
from hushsum.tables import HashRows
from tests.kernel_cases import CASES, Case

EVERY = [case.kernel for case in CASES] + [
    hs.GaussianKernel(dim=2, bandwidth=0.5, power=2),
    hs.LaplacianKernel(dim=2, bandwidth=0.5, power=2),
    hs.MaternKernel(dim=2, bandwidth=0.5, smoothness=2.5),
    hs.kernels.DotProductKernel(dim=2, radius=2.0),
    hs.kernels.PolynomialKernel(dim=2),
]


def test_every_registered_kernel_has_a_case() -> None:
    assert {kernel.name for kernel in EVERY} == set(kernel_names())


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_json_round_trip(kernel: Kernel) -> None:
    stored = json.loads(json.dumps(kernel_as_json(kernel)))
    back = kernel_from_json(stored)
    assert back == kernel
    assert hash(back) == hash(kernel)
    assert repr(back) == repr(kernel)
    assert named(kernel.name, **kernel.parameters()) == kernel


@pytest.mark.parametrize("kernel", EVERY, ids=repr)
def test_kernels_are_frozen(kernel: Kernel) -> None:
    with pytest.raises(AttributeError):
        setattr(kernel, next(iter(kernel.parameters())), 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: hs.EuclideanKernel(dim=0, bandwidth=1.0),
        lambda: hs.EuclideanKernel(dim=-1, bandwidth=1.0),
        lambda: hs.EuclideanKernel(dim=2.0, bandwidth=1.0),  # type: ignore[arg-type]
        lambda: hs.EuclideanKernel(dim=True, bandwidth=1.0),
        lambda: hs.EuclideanKernel(dim=(1 << 20) + 1, bandwidth=1.0),
        lambda: hs.EuclideanKernel(dim=2, bandwidth=0.0),
        lambda: hs.EuclideanKernel(dim=2, bandwidth=-1.0),
        lambda: hs.EuclideanKernel(dim=2, bandwidth=math.nan),
        lambda: hs.EuclideanKernel(dim=2, bandwidth=math.inf),
        lambda: hs.EuclideanKernel(dim=2, bandwidth="wide"),  # type: ignore[arg-type]
        lambda: hs.EuclideanKernel(dim=2, bandwidth=1.0, power=0),
        lambda: hs.EuclideanKernel(dim=2, bandwidth=1.0, power=257),
        lambda: hs.EuclideanKernel(dim=2, bandwidth=1.0, projection="sparse"),
        lambda: hs.EuclideanKernel(dim=2, bandwidth=1e-31),
        lambda: hs.ManhattanKernel(dim=2, bandwidth=1e31),
        lambda: hs.GaussianKernel(dim=2, bandwidth=1e-300),
        lambda: hs.EuclideanKernel(dim=2, bandwidth=1.0, power=129, projection="structured"),
        lambda: hs.ManhattanKernel(dim=0, bandwidth=1.0),
        lambda: hs.ManhattanKernel(dim=2, bandwidth=math.nan),
        lambda: hs.ManhattanKernel(dim=2, bandwidth=1.0, power=0),
        lambda: hs.AngularKernel(dim=0),
        lambda: hs.AngularKernel(dim=2, bits=0),
        lambda: hs.AngularKernel(dim=2, bits=1025),
        lambda: hs.AngularKernel(dim=2, power=0),
        lambda: hs.AngularKernel(dim=4, bits=129, projection="structured"),
        lambda: hs.HammingKernel(dim=0),
        lambda: hs.HammingKernel(dim=2, power=0),
        lambda: hs.JaccardKernel(power=0),
        lambda: hs.GaussianKernel(dim=0, bandwidth=1.0),
        lambda: hs.LaplacianKernel(dim=1, bandwidth=0.0),
        lambda: hs.MaternKernel(dim=1, bandwidth=1.0, smoothness=1.0),
        lambda: hs.GaussianKernel(dim=1, bandwidth=-2.0),
    ],
)
def test_parameters_that_break_a_rule_are_refused_in_one_sentence(make: Callable[[], Kernel]) -> None:
    with pytest.raises(UsageError, match=r"must be|gives at most") as refusal:
        make()
    assert "got" in str(refusal.value)


def test_numpy_numbers_become_plain_ones() -> None:
    kernel = hs.EuclideanKernel(dim=np.int64(3), bandwidth=np.float32(0.5))  # type: ignore[arg-type]
    assert kernel == hs.EuclideanKernel(dim=3, bandwidth=0.5)
    assert type(kernel.dim) is int
    assert type(kernel.bandwidth) is float


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="kernel must be one of angular, asymmetric-angular"):
        named("cubic")
    with pytest.raises(FileRefused, match="does not have"):
        kernel_from_json({"name": "cubic", "parameters": {}})


def test_the_gaussian_kernel_refuses_hashing() -> None:
    kernel = hs.GaussianKernel(dim=2, bandwidth=1.0)
    with pytest.raises(UsageError, match="collision probability"):
        hs.race(kernel)
    assert not isinstance(kernel, HashableKernel)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 0},
        {"rows": 2.5},
        {"rows": (1 << 24) + 1},
        {"width": 1},
        {"width": 0},
        {"rows": 1 << 20, "width": 1 << 20},
        {"seed": 1.5},
        {"seed": "x"},
        {"seed": True},
    ],
    ids=str,
)
def test_hash_rows_refuse_sizes_and_seeds(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        HashRows(**{"kernel": hs.JaccardKernel(), "rows": 10, "width": 10, "seed": 0, **change})


@pytest.mark.parametrize("kernel", [hs.AngularKernel(2), hs.HammingKernel(2), hs.JaccardKernel()], ids=repr)
def test_kernels_without_columns_of_numbers_refuse_bounds(kernel: Kernel) -> None:
    with pytest.raises(UsageError, match="bounds must be left out"):
        hs.race(kernel, bounds=(0.0, 1.0))


def test_rows_are_no_wider_than_the_values_they_can_hold() -> None:
    assert hs.race(hs.AngularKernel(4, bits=3), width=1000).basis.shape == (1000, 8)
    assert hs.race(hs.AngularKernel(4, bits=3), width=5).basis.shape == (1000, 5)
    assert HashRows(hs.AngularKernel(4, bits=3), 10, 8, 0).fold_rate == 0.0
    assert HashRows(hs.AngularKernel(4, bits=3), 10, 5, 0).fold_rate == 0.2
    assert HashRows(hs.AngularKernel(4, bits=31), 10, 8, 0).fold_rate == 0.125
    assert HashRows(hs.JaccardKernel(), 10, 4, 0).fold_rate == 0.25


def test_select_keeps_the_chosen_sets() -> None:
    sets = [[1, 2, 3], [], [4], [5, 6], []]
    batch = hs.JaccardKernel().prepare(sets)
    chosen = batch.select(np.array([True, True, False, True, False]))
    assert len(chosen) == 3
    values, starts = chosen.arrays
    assert [values[a:b].tolist() for a, b in pairwise(starts.tolist())] == [[1, 2, 3], [], [5, 6]]
    none = batch.select(np.zeros(5, np.bool_))
    assert len(none) == 0
    assert none.arrays[1].tolist() == [0]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_selected_records_keep_their_cells(case: Case) -> None:
    basis = HashRows(case.kernel, 20, 50, 3)
    batch = basis.prepare(case.records(30))
    keep = np.arange(30) % 3 == 1
    np.testing.assert_array_equal(basis.cells(batch.select(keep)), basis.cells(batch)[keep])


def test_select_of_rows_is_contiguous() -> None:
    batch = Batch((np.arange(12.0).reshape(4, 3),), 4)
    chosen = batch.select(np.array([False, True, False, True]))
    assert chosen.arrays[0].tolist() == [[3.0, 4.0, 5.0], [9.0, 10.0, 11.0]]
    assert chosen.arrays[0].flags.c_contiguous
