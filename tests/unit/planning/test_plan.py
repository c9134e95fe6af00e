"""Plans: the noise they predict is the noise that is drawn, and their bounds bound."""

from __future__ import annotations

import inspect
import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.baselines import trigonometric
from hushsum.errors import ClaimError, UsageError
from hushsum.methods import bounded_row_variance, estimated_row_variance
from hushsum.planning import Option
from hushsum.releases import TableFunction
from hushsum.tables import HashRows, rows_for_laplace
from tests.exact_tallies import exact_table

KERNEL = hs.EuclideanKernel(dim=2, bandwidth=1.0)
NORMAL = math.sqrt(2 / math.pi)


def cloud(number: int, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [6.0, 1.0], [-3.0, 5.0]])
    return centres[rng.integers(0, 3, number)] + rng.normal(size=(number, 2))


@pytest.mark.parametrize(
    "promise",
    [
        {"epsilon": 0.5},
        {"epsilon": 0.5, "delta": 1e-6},
        {"rho": 0.02},
        {"epsilon": 0.5, "relation": "replace"},
        {"epsilon": 0.5, "delta": 1e-6, "relation": "replace"},
        {"rho": 0.02, "relation": "replace"},
        {"epsilon": 0.5, "count_share": 0.1},
    ],
    ids=str,
)
@pytest.mark.parametrize("persons", [None, 1, 3])
def test_the_noise_part_is_that_of_the_actual_release(promise: dict[str, Any], persons: int | None) -> None:
    rows, width, records = 150, 40, 10_000
    plan = hs.plan(records=records, kernel=KERNEL, rows=rows, width=width, max_per_unit=persons, **promise)
    option = plan.option(rows=rows, mechanism=plan.best.mechanism)
    tally = hs.race(KERNEL, rows=rows, width=width, max_per_unit=persons)
    f = tally.release(rows=rows, insecure_noise_seed=1, **{**promise, "count_share": option.count_share})
    assert isinstance(f, TableFunction)
    deviation = math.sqrt(f.noise.variance / rows) / (1 - 1 / width) / records
    count = plan.density * math.sqrt(f.count_noise.variance) / records
    peaked = 1 - 1 / (8 * rows) if "laplace" in option.mechanism else 1.0
    assert option.mechanism == str(f.claim.mechanism)
    assert option.noise == pytest.approx(NORMAL * math.hypot(deviation, count) * peaked, rel=1e-9)


def test_the_noise_part_is_the_mean_absolute_noise_of_answers() -> None:
    """400 releases of an empty tally: mean |x| of 400 normal numbers is within 6·0.76/√400 = 23 % (2e-9)."""
    records, rows = 1000, 50
    option = hs.plan(records=records, kernel=KERNEL, rho=0.05, rows=rows, width=16).best
    tally = hs.race(KERNEL, rows=rows, width=16)
    errors = []
    for seed in range(400):
        f = tally.release(rho=0.05, relation="replace", insecure_noise_seed=seed)
        errors.append(abs(float(f.sum([[0.0, 0.0]])[0])) / records)
    # Under replace the noise has √2 times the deviation, and no count takes its share of it.
    assert np.mean(errors) == pytest.approx(option.noise * math.sqrt(2 * 0.98), rel=0.23)


def test_the_bound_is_above_the_estimate_from_public_data() -> None:
    public = cloud(2000)
    estimate = hs.plan(records=50_000, kernel=KERNEL, epsilon=1.0, public=public, rows=[100, 1000])
    bound = hs.plan(records=50_000, kernel=KERNEL, epsilon=1.0, density=estimate.density, rows=[100, 1000])
    assert (estimate.basis, bound.basis) == ("public data", "bound")
    for rows in (100, 1000):
        assert bound.option(rows=rows).approximation >= estimate.option(rows=rows).approximation
        assert bound.option(rows=rows).noise == pytest.approx(estimate.option(rows=rows).noise, rel=0.01)
        assert bound.option(rows=rows).error >= bound.option(rows=rows).noise


def test_the_bound_is_the_variance_of_an_all_or_nothing_row() -> None:
    spread = bounded_row_variance(0.04, fold_rate=0.0)
    assert spread.row_variance[0] == pytest.approx(0.04 * 0.96)
    folded = 0.04 + 0.96 / 50
    assert bounded_row_variance(0.04, fold_rate=1 / 50).row_variance[0] == pytest.approx(folded - folded**2)


@pytest.mark.parametrize("own", [True, False], ids=["own queries", "other queries"])
def test_the_estimate_is_within_a_quarter_of_the_measured_spread(own: bool) -> None:
    """Hash rows of 20,000 records like the 3000 public ones, over 2000 rows, at 40 queries.

    Both sides are variances over about 2000 rows, each with a relative deviation near √(2/2000)·√kurtosis;
    averaged over the queries they agree far within 25 %.
    """
    records, rows, width = 20_000, 2000, 100
    queries = cloud(40, seed=9)
    public = cloud(3000, seed=1)
    spread = estimated_row_variance(
        KERNEL, width=width, seed=5, records=records, public=public, queries=None if own else queries
    )
    tally = hs.race(KERNEL, rows=rows, width=width, seed=77).add(cloud(records, seed=2))
    basis = tally.basis
    assert isinstance(basis, HashRows)
    requested = public[:: 3000 // 40] if own else queries
    cells = basis.cells(basis.prepare_queries(requested))
    rows_answers = exact_table(tally)[np.arange(rows), cells] / records
    measured = rows_answers.var(axis=1, ddof=1)
    assert np.sqrt(spread.row_variance).mean() == pytest.approx(np.sqrt(measured).mean(), rel=0.25)
    exact = KERNEL.exact_sum(cloud(records, seed=2), requested) / records
    assert spread.density.mean() == pytest.approx(exact.mean(), rel=0.1)


def test_the_estimate_counts_pairs_of_different_records() -> None:
    """By loops over pairs: E[p²] from two different records that collide with the query in one row."""
    public, queries, records = cloud(12, seed=4), cloud(3, seed=5), 1000
    spread = estimated_row_variance(KERNEL, width=50, seed=6, records=records, public=public, queries=queries)
    basis = HashRows(KERNEL, 2000, 50, 6)
    mine, theirs = (basis.cells(basis.prepare(points)) for points in (public, queries))
    for q in range(3):
        hits = mine == theirs[q]
        once = np.mean([hits[i].mean() for i in range(12)])
        twice = np.mean([(hits[i] & hits[j]).mean() for i in range(12) for j in range(12) if i != j])
        expected = max(twice - once**2, 0.0) + (once - twice) / records
        assert spread.row_variance[q] == pytest.approx(expected)


def test_a_public_sample_as_small_as_the_data_gives_no_bias_from_its_size() -> None:
    large = estimated_row_variance(
        KERNEL, width=100, seed=5, records=20_000, public=cloud(6000, 1), queries=cloud(30, 9)
    )
    small = estimated_row_variance(
        KERNEL, width=100, seed=5, records=20_000, public=cloud(600, 3), queries=cloud(30, 9)
    )
    assert np.sqrt(small.row_variance).mean() == pytest.approx(np.sqrt(large.row_variance).mean(), rel=0.15)


def test_planning_never_sees_private_data() -> None:
    """The number of records is an argument without a default, and no argument is called X."""
    parameters = inspect.signature(hs.plan).parameters
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in parameters.values())
    assert parameters["records"].default is inspect.Parameter.empty
    assert {"X", "data", "tally"}.isdisjoint(parameters)
    with pytest.raises(TypeError):
        hs.plan(kernel=KERNEL, epsilon=1.0, public=cloud(100))  # type: ignore[call-arg]
    for given in (cloud(5), [1, 2, 3], "many", 2.5, None, True):
        with pytest.raises(UsageError, match="records must be an integer") as refusal:
            hs.plan(records=given, kernel=KERNEL, epsilon=1.0)  # type: ignore[arg-type]
        assert str(cloud(5)[0, 0])[:4] not in str(refusal.value), "a data value is shown"


def test_the_size_of_the_public_sample_does_not_stand_for_the_data() -> None:
    few, many = (
        hs.plan(records=9000, kernel=KERNEL, epsilon=1.0, rows=100, public=cloud(number)).best
        for number in (500, 5000)
    )
    assert few.noise == pytest.approx(many.noise, rel=0.01)
    assert few.size == pytest.approx(many.size, rel=0.01)


def test_a_declared_number_of_records_publishes_as_many_hash_rows_as_without() -> None:
    """The rows of least bound are more than those that suit typical data."""
    X = cloud(2000)
    given: dict[str, Any] = {"epsilon": 1.0, "kernel": KERNEL, "insecure_noise_seed": 3}
    declared, undeclared = hs.release(X, records=2000, **given), hs.release(X, **given)
    assert isinstance(declared, TableFunction)
    assert isinstance(undeclared, TableFunction)
    # A part of ε pays for the count.
    assert declared.rows == pytest.approx(rows_for_laplace(declared.noisy_count, 1.0, 3e-3, 5000), rel=0.05)
    assert declared.rows == pytest.approx(undeclared.rows, rel=0.2)
    assert declared.rows < hs.plan(records=2000, kernel=KERNEL, epsilon=1.0, density=0.1).best.rows


def test_the_one_liner_never_uses_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[float] = []

    def spy(records: float, epsilon: float, variance: float, capacity: int) -> int:
        requested.append(records)
        return 3

    monkeypatch.setattr("hushsum.tables._hash_rows.rows_for_laplace", spy)
    lengths = []
    for _ in range(6):
        f = hs.release(cloud(777), epsilon=0.5, bandwidth=1.0, method="race")
        assert isinstance(f, TableFunction)
        assert f.rows == 3
        # The share of the count is small, so that one noisy number in a hundred is below 1.
        lengths.append(max(1, f.noisy_count))
    assert requested == lengths
    assert set(lengths) != {777}, "six Laplace draws of scale 200 are all 0 with probability 2e-16"


def test_best_is_the_smallest_error_among_what_was_requested() -> None:
    plan = hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=5.0)
    requested = [option for option in plan if option.requested]
    assert plan.best == min(requested, key=lambda option: option.error)
    assert plan.best.delta == 0.0
    shown = [option for option in plan if not option.requested]
    assert shown
    assert all(option.delta == 1e-6 for option in shown)
    assert len(plan) == len(requested) + len(shown)


def test_without_comparison_only_what_was_requested_is_planned() -> None:
    asked: dict[str, Any] = {"records": 5000, "kernel": KERNEL, "bounds": (0, 10), "epsilon": [0.5, 1.0]}
    whole, alone = hs.plan(**asked), hs.plan(**asked, comparison=False)
    assert any(not option.requested for option in whole)
    assert list(alone) == [option for option in whole if option.requested]
    assert alone.best == whole.best


def test_every_requested_epsilon_is_planned() -> None:
    plan = hs.plan(records=1000, kernel=KERNEL, epsilon=[0.1, 1.0], delta=1e-6, rows=[100, 200])
    found = {(option.epsilon, option.rows, option.delta) for option in plan}
    assert found == set(itertools.product((0.1, 1.0), (100, 200), (0.0, 1e-6)))
    assert plan.option(epsilon=0.1).error > plan.option(epsilon=1.0).error
    with pytest.raises(UsageError, match="no option"):
        plan.option(rows=300)


def test_gaussian_noise_does_not_grow_with_rows_and_laplace_noise_does() -> None:
    plan = hs.plan(records=10_000, kernel=KERNEL, epsilon=1.0, rows=[100, 400])
    laplace = [plan.option(rows=rows, mechanism="discrete laplace").noise for rows in (100, 400)]
    gaussian = [plan.option(rows=rows, mechanism="discrete gaussian").noise for rows in (100, 400)]
    assert laplace[1] == pytest.approx(2 * laplace[0], rel=0.01)
    assert gaussian[1] == pytest.approx(gaussian[0], rel=0.01)


def test_a_plan_prints_as_a_table_with_the_best_marked() -> None:
    plan = hs.plan(records=10_000, kernel=KERNEL, epsilon=1.0, rows=[100, 400])
    lines = str(plan).splitlines()
    assert lines[0].split()[:4] == ["method", "mechanism", "promise", "table"]
    marked = [line for line in lines if line.startswith("* ")]
    assert len(marked) == 1
    assert f" {plan.best.rows}×" in marked[0]
    assert "eps=1" in marked[0]
    assert len({len(line) for line in lines[:-2]}) == 1, "columns are not aligned"
    assert len(repr(plan)) < 120
    assert repr(plan.best.method) in repr(plan)
    assert "10,000 records" in lines[-1]
    assert "a bound" in lines[-1]
    assert "rho=0.5" in str(hs.plan(records=100, kernel=KERNEL, rho=0.5, rows=10))


def test_a_plan_shows_the_best_five_of_what_was_requested() -> None:
    plan = hs.plan(records=10_000, kernel=KERNEL, epsilon=1.0, rows=[50, 100, 200, 400, 800, 1600, 3200])
    shown = plan.shown()
    requested = [option for option in shown if option.requested]
    errors = sorted(option.error for option in plan if option.requested)
    assert [option.error for option in requested] == errors[:5]
    assert len(shown) == 6, "the best option with delta is shown for comparison"
    assert f"{len(plan) - 6} more options" in str(plan)
    several = hs.plan(records=10_000, kernel=KERNEL, epsilon=[0.1, 1.0, 10.0], rows=[50, 100, 200])
    assert {option.epsilon for option in several.shown() if option.requested} == {0.1, 1.0, 10.0}
    assert several.best in several.shown()


def test_a_plan_is_data_for_machines() -> None:
    plan = hs.plan(records=10_000, kernel=KERNEL, rho=0.5)
    again = json.loads(json.dumps(plan.as_dicts()))
    assert [row["rows"] for row in again] == [option.rows for option in plan]
    assert again[0]["epsilon"] is None


def test_the_size_is_about_that_of_the_file(tmp_path: Any) -> None:
    option = hs.plan(records=500, kernel=KERNEL, rho=0.5, rows=200, width=100).best
    hs.race(KERNEL, rows=200, width=100).add(cloud(500)).release(rho=0.5).save(tmp_path / "a.hush")
    assert (tmp_path / "a.hush").stat().st_size == pytest.approx(option.size, rel=0.1)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"epsilon": 1.0}, UsageError, "dim must be given"),
        ({"epsilon": 1.0, "dim": 2}, UsageError, "bandwidth must be given"),
        ({"epsilon": 1.0, "kernel": "cubic"}, UsageError, "kernel must be one of"),
        (
            {"epsilon": 1.0, "kernel": hs.GaussianKernel(1, 1.0), "method": "grid"},
            UsageError,
            "declare bounds",
        ),
        ({"kernel": KERNEL}, ClaimError, "epsilon or rho must be given"),
        ({"kernel": KERNEL, "epsilon": []}, UsageError, "epsilon must hold at least one"),
        ({"kernel": KERNEL, "epsilon": [1.0, -1.0]}, ClaimError, "epsilon must be above 0"),
        ({"kernel": KERNEL, "epsilon": 1.0, "rows": 0}, UsageError, "rows must be"),
        ({"kernel": KERNEL, "epsilon": 1.0, "width": 1}, UsageError, "width must be"),
        ({"kernel": KERNEL, "epsilon": 1.0, "density": 0.0}, UsageError, "density must be"),
        ({"kernel": KERNEL, "epsilon": 1.0, "density": 1.5}, UsageError, "density must be"),
        ({"kernel": KERNEL, "epsilon": 1.0, "max_per_unit": 0}, UsageError, "max_per_unit must be"),
        ({"kernel": KERNEL, "epsilon": 1.0, "count_share": 1.0}, ClaimError, "count_share"),
        ({"kernel": KERNEL, "epsilon": 1.0, "public": [[0.0, 0.0]]}, UsageError, "at least 3 records"),
        ({"kernel": KERNEL, "epsilon": 1.0, "relation": "swap"}, ClaimError, "relation must be"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_senseless_plans_are_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        hs.plan(records=100, **options)


def test_names_of_kernels_without_columns() -> None:
    assert hs.plan(records=100, kernel="jaccard", epsilon=1.0).best.method == "race"
    with pytest.raises(UsageError, match="has no bandwidth"):
        hs.release([[1], [2]], kernel="jaccard", bandwidth=1.0, epsilon=1.0)
    with pytest.raises(UsageError, match="bandwidth must be given"):
        hs.release(cloud(5), epsilon=1.0)
    assert hs.release([[1], [2, 3]], kernel="jaccard", epsilon=1.0).kernel == hs.JaccardKernel()


@pytest.mark.parametrize("promise", [{"epsilon": 0.5}, {"epsilon": 0.5, "delta": 1e-6}, {"rho": 0.02}])
def test_a_tally_that_exists_is_planned_as_it_is(promise: dict[str, float]) -> None:
    gaussian = hs.GaussianKernel(dim=2, bandwidth=1.0)
    box = ((0.0, 10.0), (0.0, 7.0))
    # A tally is released with the usual share of the budget for the count.
    requested: dict[str, Any] = {"records": 5000, "count_share": 0.02, "density": 0.02, **promise}
    declared: dict[str, Any] = {**requested, "kernel": gaussian, "bounds": box}

    def own(tally: hs.Tally) -> Option:
        return hs.plan(**requested, reading=tally.reading).best

    # Sides of 10 and 7 at a spacing of a half have whole cells, so both plans are for the same grid.
    offered = [each for each in hs.plan(**declared, method="grid") if each.requested]
    # Of both kinds of noise that keep a delta, a tally that exists gets the one of less variance.
    halves = [each for each in offered if each.settings["spacing"] == 0.5]
    grids = [own(hs.grid(gaussian, bounds=box, **each.settings)) for each in halves]
    assert len({each.mechanism for each in halves}) == (2 if "delta" in promise else 1)
    (mechanism,) = {each.mechanism for each in grids}
    (grid,) = (each for each, half in zip(grids, halves, strict=True) if half.mechanism == mechanism)
    assert grid in halves
    fine = own(hs.grid(gaussian, bounds=box, cells=(40, 28)))
    assert fine.settings == {"spacing": 0.25, "degree": 5}
    assert fine.noise > 1.4 * grid.noise

    features = own(hs.fourier_features(gaussian, features=512, bounds=box))
    offered = [each for each in hs.plan(**declared, method="fourier_features") if each.requested]
    assert features in offered
    assert features.rows == 512

    rows = own(hs.race(KERNEL, rows=70, width=300))
    assert rows == hs.plan(**requested, kernel=KERNEL, method="race", rows=70, width=300).best
    assert (rows.rows, rows.width) == (70, 300)


@pytest.mark.parametrize("cap", [1, 3])
def test_features_of_persons_in_a_narrow_box_are_planned_with_the_noise_of_a_release(cap: int) -> None:
    """A person who is replaced may have had no record, which moves more than a record replaced in this box.
    The factor of up to 1.5 is for the noise of the number of records.
    """
    kernel, number = hs.GaussianKernel(dim=1, bandwidth=1.0), 20_000
    tally = hs.fourier_features(kernel, features=20, seed=3, bounds=(-0.1, 0.1), max_per_unit=cap)
    tally.add(np.zeros((number, 1)), units=np.arange(number))
    requested: dict[str, Any] = {"epsilon": 1.0, "relation": "replace"}
    requested["count_share"] = 0.3
    best = hs.plan(records=number, max_per_unit=cap, reading=tally.reading, **requested).best
    released: Any = tally.release(**requested, rows=20, insecure_noise_seed=1, population=number)
    gain = released.reading.noise_gain(released.basis.prepare_queries([[0.0]]))[0]
    noise = math.sqrt(2 / math.pi * released.noise.variance * gain) / number
    assert 1.0 <= best.noise / noise < 1.5


def test_a_basis_without_a_prediction_is_refused() -> None:
    waves = trigonometric(hs.GaussianKernel(dim=1, bandwidth=0.5), bounds=(0.0, 1.0))
    with pytest.raises(UsageError, match="is not predicted"):
        hs.plan(records=1000, epsilon=1.0, reading=waves.reading)


@pytest.mark.parametrize("columns", [3, 4])
def test_a_plan_takes_smooth_weights_in_three_and_four_columns_too(columns: int) -> None:
    """They have the least length, hence the least noise with δ, and the least error of the reading."""
    kernel = hs.GaussianKernel(columns, 0.1)
    plan = hs.plan(
        records=200_000, kernel=kernel, bounds=(0, 1), epsilon=1.0, delta=1e-6, method="grid", density=0.1
    )
    assert plan.best.settings["degree"] == 5
    assert plan.best.approximation < plan.best.noise


@pytest.mark.parametrize("records", [10, 30])
def test_a_plan_for_few_records_knows_that_their_number_is_uncertain(records: int) -> None:
    """Answers are divided by a number that may be near 0: a first-order error would be half of the true one.
    Means of 300 releases: their standard error is about a tenth.
    """
    kernel = hs.GaussianKernel(1, 0.05)
    rows = np.linspace(0.2, 0.8, records)[:, None]
    truth = kernel.exact_sum(rows, rows) / records
    best = hs.plan(
        records=records, kernel=kernel, bounds=(0, 1), epsilon=0.5, density=float(truth.mean())
    ).best
    tally = hs.grid(kernel, bounds=(0, 1), **best.settings).add(rows)
    errors = [
        np.abs(tally.release(epsilon=0.5, count_share=best.count_share, insecure_noise_seed=i)(rows) - truth)
        for i in range(300)
    ]
    assert 1 / 1.5 < np.mean(errors) / best.error < 1.5


@pytest.mark.parametrize("steps", [None, 0.5])
def test_a_kernel_far_wider_than_the_box_is_not_planned_on_a_grid(steps: float | None) -> None:
    """The tables of its reading would be as long as it is wide in cells: gigabytes."""
    kernel = hs.GaussianKernel(1, 1e6)
    plan = hs.plan(records=1000, kernel=kernel, bounds=(0, 1), epsilon=1.0, steps=steps)
    assert {option.method for option in plan} == {"fourier_features"}
    with pytest.raises(
        UsageError, match="bandwidth must be at most 10,000 times the grid's spacing, got 1e\\+06"
    ):
        hs.grid(kernel, bounds=(0, 1)).add([[0.5]] * 10).release(epsilon=1.0)
    assert (
        hs.plan(records=1000, kernel=hs.GaussianKernel(1, 1000.0), bounds=(0, 1), epsilon=1.0).best.method
        == "grid"
    )


@pytest.mark.parametrize(
    ("dim", "remedy"),
    [
        (2, "give a larger bandwidth or narrower bounds"),
        (3, "use fewer columns, a larger bandwidth or narrow"),
    ],
)
def test_a_grid_that_would_be_too_large_names_what_makes_it_smaller(dim: int, remedy: str) -> None:
    kernel = hs.GaussianKernel(dim=dim, bandwidth=1e-4)
    with pytest.raises(UsageError, match=f"small enough for the bandwidth, the bounds .*; {remedy}"):
        hs.plan(records=1000, kernel=kernel, bounds=(0, 100), epsilon=1.0, method="grid")


BOX: dict[str, Any] = {"records": 5000, "dim": 1, "bandwidth": 0.003, "bounds": (0, 1), "epsilon": 1.0}


def test_a_guessed_density_has_errors_where_few_and_where_most_records_are_near() -> None:
    plan = hs.plan(**BOX)
    low, middle, high = plan.densities
    assert low < middle < high
    assert plan.best.sparse_error < plan.best.error < plan.best.dense_error
    made = plan.as_json()
    assert made["densities"] == [low, middle, high]
    grids = [each for each in made["options"] if each["method"] == "grid"]
    assert all(each["sparse_error"] < each["dense_error"] for each in grids)
    assert f"{plan.best.dense_error:.2e}" in str(plan)
    assert "where most are near" in plan.in_words()
    known = hs.plan(**BOX, density=middle)
    assert known.best.sparse_error == known.best.error == known.best.dense_error
    assert "where most are near" not in known.in_words()


@pytest.mark.parametrize("spread", [0.0005, 0.3], ids=["concentrated", "spread"])
def test_errors_are_planned_for_records_that_are_concentrated_and_for_others(spread: float) -> None:
    """60 releases: the mean error is known to about a tenth."""
    kernel = hs.GaussianKernel(1, BOX["bandwidth"])
    rows = np.clip(np.random.default_rng(0).normal(0.5, spread, (5000, 1)), 0.0, 1.0)
    queries = rows[:50]
    truth = kernel.exact_sum(rows, queries) / len(rows)
    best = hs.plan(**BOX).best
    tally = hs.grid(kernel, bounds=(0, 1), **best.settings).add(rows)
    errors = [
        np.abs(
            tally.release(epsilon=1.0, count_share=best.count_share, insecure_noise_seed=i)(queries) - truth
        )
        for i in range(60)
    ]
    assert 0.55 < np.mean(errors) / best.error < 1.8


def test_sums_are_planned_without_the_error_of_the_number_of_records() -> None:
    means, sums = (hs.plan(**BOX, of=of).best for of in ("mean", "sum"))
    assert sums.count_share < means.count_share
    assert sums.dense_error < 0.5 * means.dense_error
    kernel = hs.GaussianKernel(1, BOX["bandwidth"])
    rows = np.random.default_rng(0).normal(0.5, 0.003, (5000, 1))
    truth = kernel.exact_sum(rows, [[0.5]])
    tally = hs.grid(kernel, bounds=(0, 1), **sums.settings).add(rows)
    errors = [
        abs(
            tally.release(epsilon=1.0, count_share=sums.count_share, insecure_noise_seed=i).sum([[0.5]])
            - truth
        )
        for i in range(60)
    ]
    assert 0.5 < np.mean(errors) / 5000 / sums.dense_error < 1.5
    with pytest.raises(UsageError, match="of must be one of mean, sum"):
        hs.plan(**BOX, of="median")
