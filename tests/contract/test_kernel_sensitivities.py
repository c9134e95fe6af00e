"""Every kernel and combination of kernels with every method, model and served function: what one unit really
changes, by brute force over neighbours, is at most what noise is calibrated for; or the kernel is refused.

Which kernel goes where is derived from its properties; nothing here lists it by name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum._types import Floats
from hushsum.errors import HushsumError, UsageError
from hushsum.kernels import (
    POSITIVE_DEFINITE,
    SPECTRAL,
    CategoricalKernel,
    ColumnKernel,
    Kernel,
    kernel_names,
    named,
    parameter_names,
)
from hushsum.methods import Method, all_methods
from hushsum.methods import _feature_functions as feature_functions
from hushsum.models import PrivateGaussianProcessRegressor, PrivateKernelSVC
from hushsum.privacy import Promise, Relation, lattice_variance, path_scale, perturb_lattice
from hushsum.secret_functions import (
    FreshAnswers,
    SecretFunction,
    answer_once,
    density_function,
    gaussian_process_function,
    kernel_svm_functions,
    load_secret_functions,
    save_secret_functions,
    serve,
)
from tests.exact_tallies import exact_table
from tests.recorded_draws import coupled_draws
from tests.recording_budget import RecordingBudget

SLACK = 1.0 + 1e-9
RNG = np.random.default_rng(7)
NUMBERS = RNG.uniform(0.0, 1.0, (24, 2))
"""Records, and further ones, in a box that is a few bandwidths wide."""
NUMBERS[:4] = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]]
CODES = RNG.integers(0, 3, (24, 2))
SETS = [sorted(set(RNG.integers(0, 9, 4).tolist())) for _ in range(23)] + [[]]
GRID = np.linspace(0.0, 1.0, 41)


def plain(name: str, dim: int, bandwidth: float) -> Kernel:
    return named(name, dim=dim, bandwidth=bandwidth if "bandwidth" in parameter_names(name) else None)


def combined(name: str, dim: int) -> Iterator[tuple[str, Kernel]]:
    """A kernel, and what can be made of it and another of its kind."""
    k, wide = plain(name, dim, 0.2), plain(name, dim, 0.4)
    other = wide if wide != k else k * k
    made: dict[str, Callable[[], Kernel]] = {
        "k": lambda: k,
        "10*k": lambda: 10 * k,
        "1e-6*k": lambda: 1e-6 * k,
        "1e12*k": lambda: 1e12 * k,
        "k + k'": lambda: k + other,
        "0.5*k + 0.5*k'": lambda: 0.5 * k + 0.5 * other,
        "k - k'": lambda: k - other,
        "k - 0.5*k'": lambda: k - 0.5 * other,
        "k * k'": lambda: k * other,
        "(2*k) * (3*k')": lambda: (2 * k) * (3 * other),
        "(k - k') * k": lambda: (k - other) * k,
        "(k - k') ** 2": lambda: (k - other) ** 2,
        "-k": lambda: -k,
    }
    if isinstance(k, ColumnKernel):
        made["scaled 10*k"] = lambda: hs.kernels.scaled(10 * k, (0, 2))
        made["scaled k - k'"] = lambda: hs.kernels.scaled(k - other, [(0, 2), (0, 3)][:dim])
    for what, make in made.items():
        try:
            yield what, make()
        except UsageError:
            assert what not in ("k", "10*k"), name


def cases(dim: int) -> list[Any]:
    return [
        pytest.param(kernel, id=f"{name}: {what}")
        for name in kernel_names()
        for what, kernel in combined(name, dim)
    ]


def records_for(kernel: Kernel) -> Any:
    if kernel.dim is None:
        return SETS
    if any(isinstance(part, CategoricalKernel) for part in kernel.parts()):
        return CODES[:, : kernel.dim]
    # Kernels of vectors are bounded in the unit ball, to which records are clipped and queries are not.
    return NUMBERS[:, : kernel.dim] / (1.0 if isinstance(kernel, ColumnKernel) else 2.0)


def gram(kernel: Kernel) -> Floats:
    records = records_for(kernel)
    return kernel.similarity(records, records)


@pytest.mark.parametrize("kernel", cases(2))
class TestProperties:
    def test_no_value_exceeds_the_bound_and_none_is_negative_without_saying_so(self, kernel: Kernel) -> None:
        values = gram(kernel)
        assert np.abs(values).max() <= kernel.size_bound() * SLACK
        assert kernel.signed or values.min() >= 0.0

    def test_a_positive_definite_kernel_is(self, kernel: Kernel) -> None:
        if not kernel.positive_definite:
            return
        values = gram(kernel)
        np.testing.assert_allclose(values, values.T, rtol=1e-6, atol=1e-9 * kernel.size_bound())
        assert np.linalg.eigvalsh(values)[0] >= -1e-6 * kernel.size_bound()

    def test_the_bound_is_the_squared_length_of_a_record(self, kernel: Kernel) -> None:
        """Where records are columns of numbers: there noise is calibrated to it, and more would be waste."""
        if POSITIVE_DEFINITE.test(kernel):
            assert np.diag(gram(kernel)) == pytest.approx(kernel.size_bound())


def test_negative_weights_are_never_positive_definite() -> None:
    for name in kernel_names():
        made = dict(combined(name, 1))
        k = made["k"]
        for what, kernel in made.items():
            negative = "-" in what.replace("1e-6", "")
            assert kernel.positive_definite is (k.positive_definite and not negative), (name, what)


def lengths(first: SecretFunction, second: SecretFunction) -> float:
    """‖f − f'‖ in the space of the kernel with its constant."""
    points = np.concatenate((first.points, second.points))
    weights = np.concatenate((first.weights, -second.weights))
    return math.sqrt(max(float(weights @ first.covariance(points, points) @ weights), 0.0))


def check_pair(first: SecretFunction, second: SecretFunction) -> tuple[float, float]:
    """How much of the declared sensitivities two neighbours use."""
    rows = first.prepared(GRID[:, None])
    used = lengths(first, second) / first.sensitivity
    apart = float(np.abs(first.at(rows) - second.at(rows)).max()) / first.pointwise
    assert used <= SLACK
    assert apart <= SLACK
    assert first.sensitivity == second.sensitivity
    assert float(np.diag(first.covariance(rows, rows)).max()) <= first.largest * SLACK
    return used, apart


def densities(kernel: Kernel, relation: Relation) -> list[tuple[SecretFunction, SecretFunction]]:
    crowd = NUMBERS[:5, :1]
    pairs = (
        [(crowd, np.concatenate((crowd, [[x]]))) for x in (0.0, 0.5, 1.0)]
        if relation is Relation.ADD_REMOVE
        else [
            (np.concatenate((crowd, [[x]])), np.concatenate((crowd, [[y]])))
            for x, y in itertools.combinations((0.0, 0.3, 1.0), 2)
        ]
    )
    return [
        (
            density_function(one, kernel, bounds=(0, 1), relation=relation),
            density_function(other, kernel, bounds=(0, 1), relation=relation),
        )
        for one, other in pairs
    ]


def posteriors(kernel: Kernel) -> list[tuple[SecretFunction, SecretFunction]]:
    inputs = NUMBERS[4:16, :1]
    noise = math.sqrt(kernel.size_bound()) * 0.7

    def fitted(y: Floats) -> SecretFunction:
        return gaussian_process_function(inputs, y, kernel, bounds=(0, 1), target_bounds=(-1, 1), noise=noise)

    targets = np.linspace(-1.0, 1.0, len(inputs))
    found = []
    for place in range(len(inputs)):
        low, high = targets.copy(), targets.copy()
        low[place], high[place] = -1.0, 1.0
        found.append((fitted(low), fitted(high)))
    return found


def machines(kernel: Kernel) -> list[tuple[SecretFunction, SecretFunction]]:
    points, codes = NUMBERS[4:16, :1], np.arange(12) % 2

    def fitted(points: Floats, codes: Any) -> SecretFunction:
        # Then every record pulls with all of C/n, and the sensitivity is nearly attained.
        c = 0.2 / (kernel.size_bound() + 1.0)
        return kernel_svm_functions(points, codes, 2, kernel, bounds=(0, 1), C=c)[0]

    found = []
    for place in (0, 5):
        other = codes.copy()
        other[place] = 1 - other[place]
        moved = points.copy()
        moved[place] = 1.0 - moved[place]
        found += [
            (fitted(points, codes), fitted(points, other)),
            (fitted(points, codes), fitted(moved, other)),
        ]
    return found


class TestServedFunctions:
    @pytest.mark.parametrize("kernel", cases(1))
    def test_densities(self, kernel: Kernel) -> None:
        usable = POSITIVE_DEFINITE.test(kernel)
        if not usable or not isinstance(kernel, ColumnKernel) or not math.isfinite(kernel.integral()):
            with pytest.raises(UsageError, match="positive definite" if not usable else "integral"):
                densities(kernel, Relation.ADD_REMOVE)
            return
        for relation in Relation:
            used = [check_pair(*pair) for pair in densities(kernel, relation)]
            # The bounds are attained, so a constant that is too small would be found.
            assert max(each for each, _ in used) > 0.95
            assert max(each for _, each in used) > 0.9

    @pytest.mark.parametrize("kernel", cases(1))
    def test_posteriors(self, kernel: Kernel) -> None:
        if not POSITIVE_DEFINITE.test(kernel):
            with pytest.raises(UsageError, match="positive definite"):
                posteriors(kernel)
            return
        assert max(check_pair(*pair)[0] for pair in posteriors(kernel)) > 0.999

    @pytest.mark.parametrize("kernel", cases(1))
    def test_machines(self, kernel: Kernel) -> None:
        if not POSITIVE_DEFINITE.test(kernel):
            with pytest.raises(UsageError, match="positive definite"):
                machines(kernel)
            return
        assert max(check_pair(*pair)[0] for pair in machines(kernel)) > 0.9

    @pytest.mark.parametrize("weight", [1e-12, 1.0, 10.0, 1e12])
    def test_noise_is_in_proportion_to_the_weight_everywhere(self, weight: float) -> None:
        """A public factor of the kernel is a factor of the answers: nothing else may change."""
        plain_kernel = hs.GaussianKernel(dim=1, bandwidth=0.2)
        queries = GRID[:, None]

        def errors(kernel: Kernel) -> list[float]:
            f = density_function(NUMBERS[:, :1], kernel, bounds=(0, 1))
            promise: Any = {"epsilon": 1.0, "delta": 1e-6}
            return [
                serve(f, **promise).noise_stderr,
                answer_once(f, queries, **promise).stderr,
                FreshAnswers(f, answers=2, **promise).noise_stderr,
                FreshAnswers(f, answers=2, epsilon=1.0, mechanism="laplace").noise_stderr,
            ]

        np.testing.assert_allclose(errors(weight * plain_kernel), weight * np.array(errors(plain_kernel)))

    def test_a_path_has_the_noise_of_its_sensitivity(self) -> None:
        """The declared length reaches the noise: a sum of two kernels has the length √2."""
        kernel = hs.GaussianKernel(dim=1, bandwidth=0.2) + hs.LaplacianKernel(dim=1, bandwidth=0.3)
        f = density_function(NUMBERS[:, :1], kernel, bounds=(0, 1))
        needed = path_scale(math.sqrt(2.0), Promise.of(epsilon=1.0, delta=1e-6))
        assert serve(f, epsilon=1.0, delta=1e-6).noise_stderr == pytest.approx(math.sqrt(2.0) * needed)

    def test_a_file_with_another_kernel_is_refused(self, tmp_path: Any) -> None:
        kernel = hs.GaussianKernel(dim=1, bandwidth=0.2)
        f = density_function(NUMBERS[:, :1], 10 * kernel, bounds=(0, 1))
        path = tmp_path / "f.served"
        save_secret_functions([f], path)
        assert load_secret_functions(path)[0][0].sensitivity == f.sensitivity
        object.__setattr__(f, "kernel", kernel - 0.5 * hs.GaussianKernel(dim=1, bandwidth=0.4))
        save_secret_functions([f], path)
        with pytest.raises(HushsumError):
            load_secret_functions(path)

    @pytest.mark.parametrize("noise", [1e-12, 1e-9, 1e-200, 1e200])
    def test_a_length_that_is_lost_in_rounding_is_refused(self, noise: float) -> None:
        inputs = np.linspace(0.0, 1.0, 60)[:, None]
        with pytest.raises(UsageError, match="above rounding"):
            gaussian_process_function(
                np.concatenate((inputs, inputs)),
                np.zeros(120),
                hs.GaussianKernel(dim=1, bandwidth=0.5),
                bounds=(0, 1),
                target_bounds=(-1, 1),
                noise=noise,
            )


SIZES: dict[str, dict[str, Any]] = {
    "kme": {"points": 24, "sensitivity": "tight"},
    "landmarks": {"points": 12},
    "pfda": {"steps": 32, "penalty": 1e-3},
    "mwem": {"bins": 16, "rounds": 4},
    "privbayes": {"bins": 8, "size": 200},
    "race": {"rows": 24, "width": 50},
    "fourier_features": {"features": 24},
    "lsq_rff": {"features": 24},
    "bernstein": {"degree": 6, "iterations": 2},
    "fourier_series": {"frequencies": 3},
    "trigonometric": {"terms": 6},
    "histogram": {"bins": 12},
}


def neighbours(kernel: Kernel, relation: Relation) -> list[tuple[Any, Any]]:
    records = records_for(kernel)
    crowd = records[4:16]

    def having(*places: int) -> Any:
        more = [records[place] for place in places]
        return [*crowd, *more] if isinstance(crowd, list) else np.concatenate((crowd, np.array(more)))

    if relation is Relation.ADD_REMOVE:
        return [(crowd, having(place)) for place in (0, 1, 3)]
    return [(having(one), having(other)) for one, other in ((0, 1), (1, 3))]


@pytest.mark.parametrize("kernel", cases(1))
def test_one_call_methods(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both neighbours are released with the noise of the first: what goes into each step differs by no more
    than what the step is calibrated for.
    """

    def release(method: Method, X: Any, relation: Relation, **options: Any) -> Any:
        return method.release(
            X,
            kernel,
            bounds=(0, 1) if isinstance(kernel, ColumnKernel) else None,
            epsilon=1.0,
            delta=None if method.pure else 1e-6,
            relation=relation,
            **SIZES.get(method.name, {}),
            **options,
        )

    for method in (each for each in all_methods() if each.tally is None):
        if not method.role.test(kernel):
            budget = RecordingBudget()
            with pytest.raises(UsageError):
                release(method, records_for(kernel), method.relations[0], budget=budget)
            assert not budget.requested, "refused before the debit"
            continue
        for relation in method.relations:
            for pair in neighbours(kernel, relation):
                draw = [partial(release, method, X, relation, insecure_noise_seed=1) for X in pair]
                with monkeypatch.context() as patch:
                    steps = coupled_draws(patch, *draw)
                assert steps
                assert all(step.moved <= step.declared * SLACK for step in steps), (method.name, steps)


@pytest.mark.parametrize("kernel", cases(1))
def test_tallies(kernel: Kernel) -> None:
    """A table counts the same whatever a kernel is multiplied with: weights are for reading."""
    bounds = (0, 1) if isinstance(kernel, ColumnKernel) else None
    for method in (each for each in all_methods() if each.tally is not None):
        sizes = {name: value for name, value in SIZES.get(method.name, {}).items() if name in method.settings}
        assert method.tally is not None
        empty = partial(method.tally, kernel, bounds=bounds, **sizes)
        if not method.role.test(kernel):
            with pytest.raises(UsageError):
                empty()
            continue
        for relation in Relation:
            declared = empty().basis.sensitivity(relation)
            for pair in neighbours(kernel, relation):
                one, other = (exact_table(empty().add(X)).astype(object) for X in pair)
                moved = one - other
                assert np.abs(moved).sum() <= declared.l1, method.name
                assert (moved**2).sum() <= declared.l2_squared, method.name
                assert np.abs(moved).max() <= declared.largest, method.name


@pytest.mark.parametrize("kernel", cases(1))
def test_models_of_a_feature_space(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lattice that takes noise, for two neighbours, and the length that its noise is for."""
    seen: list[tuple[Any, int]] = []

    def watched(l2: int, cells: int, promise: Promise, **options: Any) -> Fraction:
        seen.append((None, l2))
        return lattice_variance(l2, cells, promise, **options)

    def kept(values: Any, variance: Fraction, **options: Any) -> Any:
        seen[-1] = (values.copy(), seen[-1][1])
        return perturb_lattice(values, variance, **options)

    monkeypatch.setattr(feature_functions, "lattice_variance", watched)
    monkeypatch.setattr(feature_functions, "perturb_lattice", kept)
    X, y = np.tile(NUMBERS[:, :1], (4, 1)), np.tile(np.arange(24) % 2, 4)
    other = y.copy()
    other[3] = 1 - other[3]
    options: dict[str, Any] = {"kernel": kernel, "features": 16, "bounds": [(0, 1)], "random_state": 3}
    makers: tuple[Callable[[], Any], ...] = (
        lambda: PrivateGaussianProcessRegressor(target_bounds=(0, 1), **options),
        lambda: PrivateKernelSVC(classes=[0, 1], C=0.1, **options),
    )
    for make in makers:
        if not SPECTRAL.test(kernel):
            with pytest.raises(UsageError):
                make().fit(X, y)
            continue
        seen.clear()
        for targets in (y, other):
            make().fit(X, targets)
        (first, declared), (second, again) = seen
        moved = float(np.linalg.norm((first - second).astype(np.float64)))
        assert declared == again
        assert 0.2 * declared < moved <= declared


def test_the_tight_sensitivity_of_kme_needs_values_that_are_not_negative() -> None:
    made = type("SignedKernel", (hs.GaussianKernel,), {"signed": True, "__slots__": ()})
    kernel = made(dim=1, bandwidth=0.2)
    options: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1.0, "points": 8}
    with pytest.raises(UsageError, match="negative"):
        hs.baselines.kme(NUMBERS[:, :1], kernel, sensitivity="tight", **options)
    hs.baselines.kme(NUMBERS[:, :1], kernel, **options)
    f = density_function(NUMBERS[:, :1], kernel, bounds=(0, 1), relation="replace")
    assert (f.sensitivity, f.pointwise) == (2.0, 2.0)


@pytest.mark.parametrize("name", kernel_names())
def test_answers_and_errors_are_in_proportion_to_the_weight(name: str) -> None:
    """A public factor of the kernel is a factor of answers, standard errors and bounds, whatever its size,
    up to the rounding of noisy numbers to powers of two.
    """
    k = plain(name, 1, 0.2)
    records = records_for(k) if k.dim is None else np.repeat(records_for(k), 20, axis=0)
    for method, kernel in itertools.product(all_methods(), (2.0 * k, 0.5 * k + k * k)):
        if not method.role.test(kernel):
            continue

        def answers(kernel: Kernel, method: Method = method) -> Any:
            released = method.release(
                records,
                kernel,
                bounds=(0, 1) if isinstance(kernel, ColumnKernel) else None,
                epsilon=2.0,
                delta=None if method.pure else 1e-6,
                relation=method.relations[0],
                insecure_noise_seed=1,
                **SIZES.get(method.name, {}),
            )
            return released.query(records[:5])

        expected = answers(kernel)
        # Only what is linear in the table changes its sign with the weight.
        for weight in (1e-9, 1e9, *([] if method.tally is None else [-3.0])):
            if method.role.test(weight * kernel):
                found = answers(weight * kernel)
                # Eigenvectors may change their signs, and with them the noise of methods that draw in them.
                near = 0.2 if method.tally is None else 0.02
                np.testing.assert_allclose(
                    found.value / weight, expected.value, rtol=near, err_msg=method.name
                )
                for each in ("stderr", "bound"):
                    np.testing.assert_allclose(
                        getattr(found, each),
                        abs(weight) * getattr(expected, each),
                        rtol=0.02,
                        err_msg=f"{method.name} {each}",
                    )
