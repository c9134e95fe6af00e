"""Comparisons: for public data alone, with true errors, and honest about who did not run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.operations import BenchmarkTerms, PublicFile, benchmark_methods
from hushsum.planning import KernelSpec

GAUSSIAN = KernelSpec(kernel="gaussian", bandwidth=0.2)


@pytest.fixture
def file(tmp_path: Path) -> PublicFile:
    points = np.random.default_rng(1).normal(0.0, 0.4, (3000, 2)).round(4)
    np.savetxt(tmp_path / "p.csv", points, delimiter=",", header="a,b", comments="")
    return PublicFile(str(tmp_path / "p.csv"), ("a",))


def test_private_data_are_refused_before_they_are_read() -> None:
    with pytest.raises(UsageError, match=r"leak.*hushsum plan"):
        benchmark_methods(
            PublicFile("missing.csv"), BenchmarkTerms(epsilon=(1.0,)), kernel=GAUSSIAN, public=False
        )


def test_errors_are_those_of_the_released_functions(file: PublicFile) -> None:
    terms = BenchmarkTerms(
        epsilon=(1.0, 50.0), bounds=(-2.0, 2.0), methods=("auto", "grid", "mwem"), queries=200
    )
    heard: list[float | None] = []
    compared = benchmark_methods(file, terms, kernel=GAUSSIAN, public=True, progress=heard.append)
    assert [(each.epsilon, each.method) for each in compared.methods][-1] == (50.0, "mwem")
    assert heard[0] == 0.0
    assert compared.left_out == {}
    records = np.loadtxt(file.path, delimiter=",", skiprows=1)[:, :1]
    kernel = hs.GaussianKernel(dim=1, bandwidth=0.2)
    exact = kernel.exact_sum(records, records).mean() / len(records)
    assert compared.density == pytest.approx(exact, rel=0.1)
    best, *_ = compared.methods
    assert best.method in ("auto", "grid")
    assert best.predicted is not None
    # Three releases, each averaged over correlated places: within a factor of four but for one run in 10⁶.
    assert 0.25 < best.error / best.predicted < 4.0
    assert next(each for each in compared.methods if each.method == "mwem").predicted is None
    assert {each.mechanism for each in compared.methods if each.method == "grid"} == {"discrete laplace"}
    written = json.loads(json.dumps(compared.as_json()))
    assert len(written["methods"]) == 6
    assert set(written["exact_query_seconds"]) == {"exact sums", "scikit-learn KernelDensity"}


def test_all_that_suit_run_and_the_others_say_why_not(file: PublicFile) -> None:
    terms = BenchmarkTerms(epsilon=(1.0,), delta=1e-6, queries=20, repeats=1)
    compared = benchmark_methods(file, terms, kernel=GAUSSIAN, public=True)
    assert {each.method for each in compared.methods} == {"auto", "fourier_features", "lsq_rff"}
    assert "bounds" in compared.left_out["histogram"]
    hashed = benchmark_methods(
        file,
        BenchmarkTerms(epsilon=(1.0,), bounds=(-2.0, 2.0), queries=20, repeats=1),
        kernel=KernelSpec(kernel="euclidean", bandwidth=0.2),
        public=True,
    )
    names = {each.method for each in hashed.methods}
    assert {"auto", "race", "grid", "histogram"} <= names
    assert "scikit-learn KernelDensity" not in hashed.exact_query_seconds


@pytest.mark.parametrize(
    ("terms", "kernel", "words"),
    [
        (BenchmarkTerms(epsilon=(1.0,), methods=("magic",)), GAUSSIAN, "method must be one of"),
        (BenchmarkTerms(epsilon=()), GAUSSIAN, "got an empty list"),
        (BenchmarkTerms(epsilon=(1.0,), queries=0), GAUSSIAN, "queries"),
        (BenchmarkTerms(epsilon=(1.0,), repeats=0), GAUSSIAN, "repeats"),
        (BenchmarkTerms(epsilon=(1.0,)), KernelSpec(kernel="jaccard"), "columns of numbers"),
    ],
)
def test_senseless_comparisons_are_refused(
    file: PublicFile, terms: BenchmarkTerms, kernel: KernelSpec, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        benchmark_methods(file, terms, kernel=kernel, public=True)


def test_records_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("a\nnan\n1.0\n")
    with pytest.raises(DataRefused, match="finite"):
        benchmark_methods(
            PublicFile(str(tmp_path / "w.csv")), BenchmarkTerms(epsilon=(1.0,)), kernel=GAUSSIAN, public=True
        )
