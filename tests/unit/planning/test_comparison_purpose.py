"""Plans and releases for the purpose of a comparison: the same table for all who declare the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.releases import NoisyTable

BOX: dict[str, Any] = {"bounds": (-6, 6), "purpose": "compare", "comparison": False}


def moves(**given: Any) -> float:
    planned = hs.plan(**{"records": 1000, "dim": 1, "epsilon": 0.3, "seed": 3, **BOX, **given})
    assert len(planned) == 1
    assert planned.best.move is not None
    return planned.best.move


def released(owner: int, number: int, dim: int, **given: Any) -> NoisyTable:
    rows = np.random.default_rng(owner).normal(size=(number, dim))
    declared: dict[str, Any] = {"records": 500, "bounds": (-6, 6), "purpose": "compare", **given}
    f = hs.release(rows, epsilon=0.3, insecure_noise_seed=owner, **declared)
    assert isinstance(f, NoisyTable)
    return f


@pytest.mark.parametrize(
    ("dim", "given"), [(1, {}), (5, {}), (2, {"kernel": "euclidean"}), (2, {"relation": "replace"})]
)
def test_owners_who_declare_the_same_release_tables_of_one_basis(dim: int, given: dict[str, Any]) -> None:
    # Sizes that a noisy count decided would differ: 40 records and 3000.
    given = {"seed": 3, **given}
    f, g = released(1, 40, dim, **given), released(2, 3000, dim, **given)
    assert f.basis.fingerprint == g.basis.fingerprint
    assert f.table.shape == g.table.shape
    assert hs.compare(f, g).test.method == "principal coordinates"


def test_without_a_declared_number_of_records_the_tables_are_the_same_too() -> None:
    f, g = released(1, 40, 1, records=None), released(2, 3000, 1, records=None)
    assert f.basis.fingerprint == g.basis.fingerprint
    assert f.table.shape == g.table.shape


def test_more_records_and_more_budget_find_smaller_moves() -> None:
    assert moves(records=10_000) < moves() < moves(records=300)
    assert moves(epsilon=1.0) < moves() < moves(epsilon=0.1)
    assert moves(relation="replace") > moves()
    assert moves(max_per_unit=5) > moves()


def test_the_table_of_a_comparison_is_never_placed_by_the_records() -> None:
    many = hs.plan(records=100_000, dim=5, epsilon=1.0, bandwidth=1.0, bounds=(-6, 6), comparison=False)
    assert "landmarks" in {each.method for each in many}
    assert many.best.move is None
    assert "move" not in many.best.as_json()
    found = hs.plan(records=1000, dim=5, epsilon=0.3, seed=3, **BOX)
    assert found.best.method == "fourier_features"
    assert found.as_json()["options"][0]["move"] == found.best.move
    assert "finds with probability 1/2" in found.note()
    with pytest.raises(UsageError, match="method"):
        hs.plan(records=1000, dim=5, epsilon=0.3, method="landmarks", **BOX)


def test_a_seed_a_bandwidth_and_a_count_share_that_are_given_are_kept() -> None:
    found = hs.plan(records=1000, dim=2, epsilon=0.3, seed=7, bandwidth=2.5, count_share=0.3, **BOX)
    assert found.best.sizes["seed"] == 7
    assert found.kernel == hs.GaussianKernel(dim=2, bandwidth=2.5)
    assert found.best.count_share == 0.3


def test_the_bandwidth_follows_from_the_declared_ranges() -> None:
    box = [(0.0, 8.0), (0.0, 80.0)]
    kernel = hs.plan(records=1000, dim=2, epsilon=1.0, seed=3, **{**BOX, "bounds": box}).kernel
    assert isinstance(kernel, hs.kernels.ColumnKernel)
    np.testing.assert_allclose(kernel.column_bandwidths(), [1.0, 10.0], rtol=0.05)


def test_a_grid_and_a_tally_that_exists_are_planned_for_a_comparison() -> None:
    kernel = hs.GaussianKernel(dim=1, bandwidth=1.0)
    assert moves(dim=1, kernel=kernel, method="grid") > 0.0
    reading = hs.grid(kernel, bounds=(-6, 6)).reading
    assert moves(dim=1, kernel=kernel, reading=reading) > 0.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bounds": None, "bandwidth": 1.0}, "bounds"),
        ({"purpose": "contrast"}, "purpose"),
        ({"method": "bernstein"}, "purpose"),
    ],
)
def test_what_cannot_be_planned_for_a_comparison_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        released(1, 40, 1, **{"bandwidth": 1.0, **given})
