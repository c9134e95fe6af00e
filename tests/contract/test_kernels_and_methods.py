"""Every kernel with every method: it releases and answers within its error, or is refused by role.

Support is derived from roles, so nothing here lists which kernel goes with which method.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import Kernel, kernel_names, named, parameter_names
from hushsum.methods import Method, all_methods, method_named, method_names, planned_methods, tally_methods
from hushsum.operations import RecordFiles, tally_records
from hushsum.planning import KernelSpec, TableSpec
from hushsum.privacy import Relation
from hushsum.releases import TableFunction

RNG = np.random.default_rng(11)
NUMBERS = np.clip(RNG.normal(0.5, 0.15, (2000, 2)), 0.0, 1.0)
CODES = RNG.integers(0, 3, (2000, 2))
SETS = [[i % 5, 5 + i % 3, 8 + i % 2] for i in range(2000)]
SIZES: dict[str, dict[str, Any]] = {
    "kme": {"points": 60},
    "landmarks": {"points": 200},
    "pfda": {"steps": 64, "penalty": 1e-4},
    "mwem": {"bins": 12, "rounds": 6},
    "privbayes": {"bins": 12, "size": 4000},
    "race": {"rows": 400, "width": 100},
    "fourier_features": {"features": 400},
    "lsq_rff": {"features": 400},
    "bernstein": {"degree": 15, "iterations": 10},
    "fourier_series": {"frequencies": 4},
    "trigonometric": {"terms": 12},
    "histogram": {"bins": 20},
}


def kernel_of(name: str, dim: int = 2) -> Kernel:
    return named(name, dim=dim, bandwidth=0.3 if "bandwidth" in parameter_names(name) else None)


def records_of(kernel: Kernel) -> Any:
    if kernel.dim is None:
        return SETS
    return (CODES if kernel.name == "hamming" else NUMBERS)[:, : kernel.dim]


def released(method: Method, kernel: Kernel) -> Any:
    bounded = method.needs_bounds or kernel.dim is not None
    return method.release(
        records_of(kernel),
        kernel,
        bounds=(0, 1) if bounded and isinstance(kernel, hs.kernels.ColumnKernel) else None,
        epsilon=4.0,
        delta=None if method.pure else 1e-6,
        relation=method.relations[0],
        insecure_noise_seed=3,
        **SIZES.get(method.name, {}),
    )


@pytest.mark.parametrize("method", method_names())
@pytest.mark.parametrize("kernel", kernel_names())
def test_a_pair_releases_and_answers_or_is_refused_by_its_role(kernel: str, method: str) -> None:
    way = method_named(method)
    chosen = kernel_of(kernel, dim=1 if way.most_columns == 1 else 2)
    if not way.role.test(chosen):
        with pytest.raises(UsageError, match=re.escape(way.role.what)) as refusal:
            released(way, chosen)
        assert kernel in str(refusal.value)
        return
    f = released(way, chosen)
    records = records_of(chosen)
    queries = records[:25]
    truth = chosen.exact_sum(records, queries) / len(records)
    off = np.abs(f(queries) - truth)
    # Baselines with a few coefficients smooth a corner away; none is off by a tenth on average.
    assert off.mean() < 0.1, (kernel, method, off.mean())
    assert np.isfinite(f(queries)).all()
    answers = f.query(queries)
    assert answers.value == pytest.approx(f(queries))


@pytest.mark.parametrize("kernel", kernel_names())
def test_plan_and_release_take_every_kernel_that_a_planned_method_takes(kernel: str) -> None:
    chosen = kernel_of(kernel)
    columns = isinstance(chosen, hs.kernels.ColumnKernel)
    planned = [method_named(name) for name in planned_methods()]
    # Methods without a tally are planned in more columns than these records have.
    fitting = [each.name for each in planned if each.role.test(chosen) and each.tally is not None]
    assert fitting, "no planned method takes this kernel"
    options: dict[str, Any] = {"kernel": chosen, "bounds": (0, 1) if columns else None, "epsilon": 2.0}
    plan = hs.plan(records=2000, **options)
    assert {option.method for option in plan} == set(fitting)
    f = hs.release(records_of(chosen), records=2000, **options)
    truth = chosen.exact_sum(records_of(chosen), records_of(chosen)[:25]) / 2000
    off = np.abs(f(records_of(chosen)[:25]) - truth).mean()
    if isinstance(f, TableFunction):
        # Without a public sample rows are chosen for a typical kernel sum, not by the bound that is planned.
        plan = hs.plan(records=2000, rows=f.rows, **options)
    # A prediction is a mean, and one draw of shared hash functions may be three times it.
    assert off < 4.0 * plan.best.error + 0.01


@pytest.mark.parametrize("method", tally_methods())
@pytest.mark.parametrize("kernel", [name for name in kernel_names() if "bandwidth" in parameter_names(name)])
def test_a_file_is_counted_by_every_pair_or_refused(kernel: str, method: str, tmp_path: Any) -> None:
    source, output = str(tmp_path / "records.csv"), str(tmp_path / "out.tally")
    pd.DataFrame(NUMBERS[:50], columns=["a", "b"]).to_csv(source, index=False)
    way, chosen = method_named(method), kernel_of(kernel)
    files = RecordFiles((source,), bounds=(0.0, 1.0))
    choice, size = KernelSpec(kernel=kernel, bandwidth=0.3), TableSpec(method=method)
    if not way.role.test(chosen):
        with pytest.raises(UsageError, match=re.escape(way.role.what)):
            tally_records(files, output, kernel=choice, size=size)
        return
    tally_records(files, output, kernel=choice, size=size)
    tally = hs.load_tally(output)
    assert tally.kernel == chosen
    assert tally.basis.columns == ("a", "b")
    f = tally.release(epsilon=1.0)
    frame = pd.DataFrame({"b": [0.2, 0.4], "a": [0.5, 0.9]})
    np.testing.assert_array_equal(f(frame), f(frame[["a", "b"]].to_numpy()))


@pytest.mark.parametrize("method", [m.name for m in all_methods() if m.most_columns != 1])
def test_queries_are_matched_by_the_names_of_columns(method: str) -> None:
    way = method_named(method)
    kernel = kernel_of(
        next(
            name for name in ("gaussian", "euclidean", *way.role.kernels()) if way.role.test(kernel_of(name))
        )
    )
    frame = pd.DataFrame(NUMBERS * [1.0, 0.5], columns=["a", "b"])
    bounds = {"b": (0.0, 0.5), "a": (0.0, 1.0)}
    f: Any = hs.release(
        frame,
        kernel=kernel,
        bounds=bounds if isinstance(kernel, hs.kernels.ColumnKernel) else None,
        epsilon=2.0,
        delta=None if way.pure else 1e-6,
        relation=way.relations[0],
        method=method,
    )
    assert f.columns == ("a", "b")
    swapped = pd.DataFrame({"b": [0.25], "a": [0.5]})
    np.testing.assert_array_equal(f(swapped), f([[0.5, 0.25]]))
    with pytest.raises(UsageError):
        f(pd.DataFrame({"a": [0.5], "c": [0.25]}))


@pytest.mark.parametrize(
    "bounds", [{"a": (0, 1)}, {"a": (0, 1), "b": (0, 1), "c": (0, 1)}, {"a": (0, 1), "c": (0, 1)}]
)
def test_bounds_by_name_must_name_the_columns(bounds: Any) -> None:
    frame = pd.DataFrame(NUMBERS, columns=["a", "b"])
    with pytest.raises(UsageError, match="name of every column"):
        hs.release(frame, kernel="gaussian", bandwidth=0.3, bounds=bounds, epsilon=1.0)


@pytest.mark.parametrize("power", [1, 2, 4])
@pytest.mark.parametrize("name", ["gaussian", "laplacian"])
def test_a_power_is_a_narrower_kernel(name: str, power: int) -> None:
    """The width of a kernel with a power is the bandwidth of the same kernel without one, for both of the
    kernels whose powers are kernels of their kind; what is derived from it is the same too.
    """
    narrowed = {"gaussian": 0.4 / power**0.5, "laplacian": 0.4 / power}[name]
    powered, plain = (named(name, dim=2, bandwidth=0.4, power=power), named(name, dim=2, bandwidth=narrowed))
    assert isinstance(powered, hs.kernels.ProfileKernel)
    assert powered.width == pytest.approx(narrowed)
    assert powered.integral() == pytest.approx(plain.integral())  # type: ignore[attr-defined]
    X: NDArray[np.float64] = NUMBERS[:500]
    tallies = [hs.baselines.histogram_tally(each, bounds=(0, 1), bins=8).add(X) for each in (powered, plain)]
    errors = [tally.release(rho=1.0, insecure_noise_seed=1).query(X[:9]).stderr for tally in tallies]
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-5)
    plans = [hs.plan(records=10_000, kernel=each, bounds=(0, 1), epsilon=1.0) for each in (powered, plain)]
    assert plans[0].density == pytest.approx(plans[1].density)
    assert plans[0].best.error == pytest.approx(plans[1].best.error, rel=1e-6)


def test_relations_are_declared_in_order_of_preference() -> None:
    assert all(method.relations and set(method.relations) <= set(Relation) for method in all_methods())


def test_quantiles_and_models_take_bounds_by_name() -> None:
    frame = pd.DataFrame(NUMBERS * [1.0, 0.5], columns=["a", "b"])
    bounds = {"b": (0.0, 0.5), "a": (0.0, 1.0)}
    found = hs.private_quantiles(frame, 0.5, bounds=bounds, epsilon=8.0, insecure_noise_seed=1)
    assert [row[0] for row in found.values] == pytest.approx([0.5, 0.25], abs=0.05)
    model = hs.PrivateSampler(epsilon=2.0, bounds=bounds)
    model.n_features_in_, model.feature_names_in_ = 2, np.array(["a", "b"], dtype=object)
    assert model.column_bounds() == [(0.0, 1.0), (0.0, 0.5)]
    with pytest.raises(UsageError, match="names of the columns"):
        hs.private_quantiles(NUMBERS, 0.5, bounds=bounds, epsilon=1.0)
