"""The reproduction of the summarization paper: its theorems, and a run from data to report."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from papers.summarization import __main__ as run
from papers.summarization import experiments, protocol
from papers.summarization.data import Floats, Labels, Setting, bandwidth_of
from papers.summarization.exact_greedy import exact_greedy
from papers.summarization.published import (
    AS_PUBLISHED,
    Iteration,
    MarginalSums,
    PublishedParameters,
    UnsoundRule,
    published_auction,
)
from papers.summarization.references import run_references
from papers.summarization.report import write_report
from papers.summarization.tables import Results, references
from papers.summarization.theorems import (
    additive_error,
    approximation_bound,
    auction_parameters,
    broadcast_epsilons,
    characteristic,
    composed,
    expected_marginal_error,
    expected_requests,
    greedy_error,
    marginal_error,
    parsimony_order,
    requirements,
    submodular,
)

from hushsum.errors import ClaimError, UsageError
from hushsum.kernels import GaussianKernel
from hushsum.parties.summarization import SummaryFeatures


def marginal_errors(width: int, vectors: int, epsilon: float, steps: int, runs: int) -> list[float]:
    """Largest errors over coordinates of the sums that h2 tells, with T = d² iterations, as published."""
    rng = np.random.default_rng(2)
    points = np.clip(rng.normal(0.3, 0.4, (vectors, width)), -1.0, 1.0)
    spending = Iteration(Fraction(epsilon) / 2, Fraction(epsilon) / 2)
    found = []
    for seed in range(runs):
        marginals = MarginalSums(width, steps)
        places = marginals.round(points, rng).sum(axis=0)
        means = marginals.improve(
            places, vectors, width**2, spending, calibration=AS_PUBLISHED, insecure_noise_seed=seed
        )
        found.append(float(np.abs(means - points.mean(axis=0)).max()) * vectors)
    return found


VALIDATION = 2


def objective(matrix: NDArray[np.float64], places: tuple[int, ...]) -> float:
    """J of a summary; the first rows are the validation set."""
    s = list(places)
    if not s:
        return 0.0
    return float(2 * matrix[:VALIDATION][:, s].mean() - matrix[np.ix_(s, s)].mean())


def subsets(n: int, most: int) -> list[tuple[int, ...]]:
    ground = range(VALIDATION, n)
    return [each for size in range(most + 1) for each in itertools.combinations(ground, size)]


def test_theorems_1_and_2_are_false_in_their_own_regime() -> None:
    """No two points alike: the strongest form of the condition, for every number of points."""
    matrix = np.eye(8)
    assert submodular(matrix)
    empty, one, two = (objective(matrix, tuple(range(2, 2 + k))) for k in range(3))
    assert (empty, one, two) == (0.0, -1.0, -0.5)
    assert one < empty  # neither non-negative nor monotone
    assert one + one < two + empty  # nor submodular
    best = max(objective(matrix, each) for each in subsets(8, 3) if len(each) == 3)
    promised = (1.0 - 1.0 / math.e) * best
    assert best == pytest.approx(-1 / 3)
    assert best < promised < -0.21
    assert approximation_bound(best, 0.0) < best


@pytest.mark.parametrize("seed", range(8))
def test_the_corrected_function_is_monotone_and_submodular_from_the_empty_set_on(seed: int) -> None:
    """Entries at the ends of the allowed range, where sums of them are largest and smallest, and greedy."""
    n, size = 8, 3
    rng = np.random.default_rng(seed)
    most = 1.0 / (12 * size)
    matrix = np.triu(rng.choice([0.0, most], (n, n)), 1)
    matrix = matrix + matrix.T + np.eye(n)
    assert submodular(matrix, size)

    def value(places: tuple[int, ...]) -> float:
        return objective(matrix, places) + (1.5 if places else 0.0)

    for chosen in subsets(n, 2 * size - 2):
        rest = [i for i in range(VALIDATION, n) if i not in chosen]
        assert value(chosen) >= 0.0
        for u in rest:
            assert value((*chosen, u)) >= value(chosen)
        for u, v in itertools.combinations(rest, 2):
            gain = value((*chosen, u)) + value((*chosen, v)) - value((*chosen, u, v)) - value(chosen)
            assert gain >= -1e-12
    greedy: tuple[int, ...] = ()
    for _ in range(size):
        greedy = max(
            ((*greedy, i) for i in range(VALIDATION, n) if i not in greedy),
            key=lambda each: objective(matrix, each),
        )
    best = max(objective(matrix, each) for each in subsets(n, size) if len(each) == size)
    assert objective(matrix, greedy) >= approximation_bound(best, 0.0)
    matrix[0, 1] = matrix[1, 0] = 2 * most
    assert not submodular(matrix, size)


def test_the_bounds_are_the_paper_s() -> None:
    with pytest.raises(ValueError, match="square"):
        submodular([[1.0]])
    free = approximation_bound(1.0, 0.0, peak=0.0)
    assert free - approximation_bound(1.0, additive_error(2, 0.1)) == pytest.approx(
        1.5 / math.e + 0.7 * math.log(2)
    )
    assert free == pytest.approx(1 - 1 / math.e)
    assert parsimony_order(27) == pytest.approx(3.0)
    summary, validation = PublishedParameters().composed(2000)
    assert summary == pytest.approx(0.043, abs=0.0005)
    # The paper prints 1.4: the classical advanced composition, of the same numbers.
    assert validation == pytest.approx(1.318, abs=0.001)
    classical = 1656 * 0.01 * math.expm1(0.01) + 0.01 * math.sqrt(2 * 1656 * math.log(100))
    assert classical == pytest.approx(1.401, abs=0.001)
    assert composed([0.01] * (2 * 1656), 0.01) == pytest.approx(1.912, abs=0.001)


def test_h2_errs_as_theorems_3_and_4_say() -> None:
    width, vectors, epsilon, steps = 32, 20_000, 0.1, 32
    errors = np.array(marginal_errors(width, vectors, epsilon, steps, runs=4))
    # Theorem 3 has coordinates of at most √(2/d), these are scaled to 1.
    scale = np.sqrt(2.0 / width) / vectors
    assert scale * errors.mean() <= expected_marginal_error(width, vectors, epsilon, 2.0 / steps)
    bound, failing = marginal_error(width, vectors, width**2, epsilon, steps)
    assert failing == pytest.approx(1 / 16)
    assert np.mean(errors > bound) <= failing
    # More iterations and vectors make the bound smaller: it is not one that holds for any numbers.
    assert bound < vectors
    assert marginal_error(width, vectors, 4 * width**2, epsilon, steps)[0] < bound


def test_lemma_4_holds_for_no_size_of_the_experiments() -> None:
    needed = requirements(60_000, 2000, 1e-4, constant=1.0)
    assert needed.width == pytest.approx(16 * np.log(120_000) * np.log(2000) ** 2)
    assert needed.seeds > 1e12
    # The bound falls with the width, and at the needed one it is a and terms that vanish with ln p.
    assert greedy_error(140, 2000, 1.0, 1.0) > greedy_error(14_000, 2000, 1.0, 1.0)
    assert greedy_error(10**9, 2000, 1.0, 0.01) == pytest.approx(0.07 + 7 / np.log(2000), rel=0.1)


def test_theorem_6_composes_to_its_epsilon() -> None:
    epsilon, delta, iterations, size, owners = 1.0, 1e-4, 5, 2000, 100
    rounds, validation = broadcast_epsilons(epsilon, delta, iterations, size)
    # A choice and a measurement in each iteration, each of that ε.
    broadcasts = composed(np.repeat(rounds, 2 * iterations).tolist(), delta)
    rate, repeats = auction_parameters(epsilon, delta, owners)
    auction = composed([rate] * repeats, delta)
    assert broadcasts <= 0.75 * epsilon
    assert auction <= epsilon / 3.0
    assert broadcasts + auction <= epsilon
    assert composed([validation] * (2 * iterations), delta) <= 0.75 * epsilon
    assert rate == pytest.approx(0.0055, rel=0.01)


def test_theorem_7_is_the_composition_of_the_published_figures() -> None:
    summary, validation = PublishedParameters().composed(2000)
    assert composed([0.01] * 1656, 0.01) == pytest.approx(validation)
    assert validation == pytest.approx(1.32, abs=0.005)
    assert composed([0.01 / np.sqrt(10_000)] * 10_000, 1e-4) == pytest.approx(summary)
    assert composed([0.1], 0.01) == pytest.approx(0.1)


def test_requests_by_rank_are_those_of_lemma_5_s_proof() -> None:
    assert expected_requests(5, 1.0) == pytest.approx(np.exp(-np.arange(5.0)).sum())


def test_hashes_show_nothing_but_distances() -> None:
    rng = np.random.default_rng(4)
    points, gamma, number = rng.normal(0.0, 0.7, (3, 2)), 0.3, 400_000
    directions = rng.normal(0.0, np.sqrt(2.0 * gamma), (number, 2))
    angles = np.mod(directions @ points.T + rng.uniform(0.0, 2.0 * np.pi, (number, 1)), 2.0 * np.pi)
    for numbers in ([1, -1, 0], [1, 1, -2], [2, -1, -1], [1, 0, 0], [1, 1, 1], [-3, 1, 1]):
        measured = np.exp(1j * angles @ np.array(numbers)).mean()
        # A mean of unit numbers: within 5/√n but for a chance below 1e-5.
        assert abs(measured - characteristic(points, numbers, gamma)) < 5.0 / np.sqrt(number)
    kernel = np.exp(-gamma * ((points[0] - points[1]) ** 2).sum())
    assert characteristic(points, [1, -1, 0], gamma) == pytest.approx(kernel)
    turned = points @ np.array([[0.6, -0.8], [0.8, 0.6]]) + 5.0
    assert characteristic(turned, [2, -1, -1], gamma) == pytest.approx(
        characteristic(points, [2, -1, -1], gamma)
    )


def two_clusters(seed: int) -> Setting:
    """Two owners, one with the target's cluster."""
    rng = np.random.default_rng(seed)

    def cluster(number: int, centre: float) -> tuple[Floats, Labels]:
        points = rng.normal(centre, 1.0, (number, 2))
        return points, (points[:, 0] > centre).astype(np.int64)

    near, far = cluster(300, 2.0), cluster(300, -2.0)
    test = cluster(100, 2.0)
    return Setting(
        "census",
        {"a": near[0], "b": far[0]},
        {"a": near[1], "b": far[1]},
        cluster(60, 2.0)[0],
        test[0],
        test[1],
        1.0,
        cluster(20, 0.0)[0],
    )


def test_runs_from_data_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("census", "mnist", "mnist_paper"):
        monkeypatch.setitem(run.SETTINGS, name, two_clusters)
    extent = run.Extent((40,), 40, 1)
    # The published broadcasts take a millisecond for each of 1,656 iterations.
    few = partial(PublishedParameters, first_iterations=40, later_iterations=1)
    monkeypatch.setattr(experiments, "PublishedParameters", few)
    methods = ["greedy", "greedy_exact", "uniform", "threshold", "published"]
    assert run.run("census", methods, extent, tmp_path)
    settings = {"census": (run.SETTINGS["census"], 50)}
    beside = tmp_path / "protocol.json"
    assert protocol.run_protocol(settings, beside, sizes=(40,), repetitions=2)
    rows = json.loads((tmp_path / "census.json").read_text(encoding="utf-8"))
    assert {row["method"] for row in rows} == set(methods)
    assert all(row["version"] for row in rows)
    by_method = {(row["method"], row["size"]): row["mmd2"] for row in rows}
    assert by_method["greedy_exact", 40] < by_method["uniform", 40]
    assert by_method["greedy", 40] < by_method["uniform", 40]
    # With features it maximises another function, nearly the same.
    assert by_method["greedy_exact", 40] < 1.1 * by_method["greedy", 40] + 1e-4
    # What has a row is not run again.
    written = beside.read_text(encoding="utf-8")
    monkeypatch.setitem(run.SETTINGS, "census", lambda seed: pytest.fail("run again"))
    assert run.run("census", methods, extent, tmp_path)
    settings = {"census": (run.SETTINGS["census"], 50)}
    assert protocol.run_protocol(settings, beside, sizes=(40,), repetitions=2)
    assert beside.read_text(encoding="utf-8") == written
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "| census, 40 | as published, no claim |" in page
    assert "| census, 40 | as published but in batches of p/50, no claim |" in page
    assert "gives <!-- validation -->1.32<!-- /validation -->; the paper" in " ".join(page.split())
    assert "| greedy, not private |" in page
    assert "What the theorems need" in page
    assert (tmp_path / "census.svg").stat().st_size > 1000


def test_exact_greedy_is_greedy() -> None:
    """Every choice has the largest gain of all points that are left, whatever was decided ahead."""
    rng = np.random.default_rng(8)
    points, validation = rng.normal(0.0, 1.0, (150, 3)), rng.normal(0.5, 0.7, (40, 3))
    chosen = exact_greedy(points, validation, 60, 1.2)
    kernel = GaussianKernel(dim=3, bandwidth=1.2)
    within, towards = kernel.similarity(points, points), kernel.similarity(points, validation).mean(axis=1)
    taken: list[int] = []
    for pick in chosen:
        gains = towards - (0.5 + within[:, taken].sum(axis=1)) / (len(taken) + 1)
        gains[taken] = -np.inf
        assert gains[pick] == pytest.approx(gains.max(), abs=1e-6)
        taken.append(int(pick))
    assert len(set(taken)) == 60
    assert len(exact_greedy(points[:5], validation, 60, 1.2)) == 5


def test_which_greedy_an_excess_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = run_references(two_clusters, size=40, pairs=(20, 100), repetitions=1)
    assert [row["with"] for row in rows] == [
        "140 features", "20 pairs", "100 pairs", "exact kernel", "100 pairs",
    ]  # fmt: skip
    by_way = {row["with"]: row["mmd2"] for row in rows if row["method"] == "greedy"}
    assert by_way["exact kernel"] < by_way["20 pairs"]
    results = Results([{"seed": 0, "method": "uniform", "size": 40, "mmd2": 2.0 * by_way["exact kernel"]}])
    assert "| +100% | – | – | 1 |" in references(rows, results)


def test_gamma_and_bandwidth() -> None:
    assert bandwidth_of(0.1) == pytest.approx(np.sqrt(5.0))


def test_h2_comes_near_the_mean_and_its_calibration_pays_for_the_choice() -> None:
    rng = np.random.default_rng(4)
    vectors = rng.uniform(-1, 1, (3000, 6)) * np.linspace(0.2, 1, 6) + np.linspace(-0.2, 0.3, 6).clip(
        -0.2, 0.0
    )
    sums = MarginalSums(6, 32)
    places = sums.round(vectors, rng).sum(axis=0)
    spending = Iteration.for_rho(Fraction(1, 10))
    assert float(spending.rho) == pytest.approx(0.1)
    assert spending.epsilon == spending.choice + spending.measurement
    got = sums.improve(places, 3000, 300, spending, insecure_noise_seed=1)
    assert np.abs(got - vectors.mean(axis=0)).max() < 0.05
    rough = MarginalSums(6, 32).improve(
        places, 3000, 300, spending, calibration=AS_PUBLISHED, insecure_noise_seed=1
    )
    assert np.abs(rough - vectors.mean(axis=0)).max() < 0.05
    with pytest.raises(ClaimError):
        Iteration.for_rho(Fraction(0))


def test_the_published_auction_warns_and_reports_the_paper_s_figure() -> None:
    rng = np.random.default_rng(0)
    owners = {"near": rng.normal(0, 1, (1500, 2)), "far": rng.normal(4, 1, (1500, 2))}
    validation = rng.normal(0, 1, (300, 2))
    features = SummaryFeatures(2, 1.0, 30, 1, paired=False)
    with pytest.warns(UnsoundRule, match="does not keep its claim"):
        run = published_auction(
            list(owners.values()),
            validation,
            features,
            40,
            seed_points=validation[:20] + 9.0,
            rounds_at_once=4,
            parameters=PublishedParameters(first_iterations=60),
        )
    assert len(run.owners) == 40
    assert run.seen >= 40
    assert (run.owners == 0).mean() > 0.5
    with pytest.warns(UnsoundRule), pytest.raises(UsageError, match="paired"):
        published_auction(
            list(owners.values()), validation, SummaryFeatures(2, 1.0, 30, 1), 4, seed_points=validation
        )
