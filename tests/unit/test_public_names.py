"""The public face: which names there are, what importing them costs, that every module says what it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hushsum as hs

PACKAGE = Path(hs.__file__).parent
HEAVY = [
    "cryptography",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "scipy",
    "sqlalchemy",
    "sklearn",
    "typer",
]
MODELS_ONLY = ["pandas", "scipy", "sklearn"]


def test_the_public_names_are_these() -> None:
    assert hs.__all__ == [
        "AngularKernel",
        "Answers",
        "AsymmetricAngularKernel",
        "AuditReport",
        "Claim",
        "Comparison",
        "DotProductKernel",
        "Drift",
        "EuclideanKernel",
        "FittedKernel",
        "GaussianKernel",
        "HammingKernel",
        "JaccardKernel",
        "LaplacianKernel",
        "Ledger",
        "ManhattanKernel",
        "MaternKernel",
        "OnnxTransform",
        "Plan",
        "PolynomialKernel",
        "PrivateClassifier",
        "PrivateDensity",
        "PrivateGaussianProcessRegressor",
        "PrivateHistogram",
        "PrivateKMeans",
        "PrivateKernelSVC",
        "PrivateLinearSVC",
        "PrivateMixture",
        "PrivateModes",
        "PrivateNeighbors",
        "PrivateOutlierDetector",
        "PrivateRegressor",
        "PrivateSampler",
        "PrivateSynthesizer",
        "ReleasedFunction",
        "Stream",
        "StreamPlan",
        "Tally",
        "Transform",
        "__version__",
        "audit",
        "choose",
        "choose_kernel",
        "combine",
        "compare",
        "connect",
        "count_graph",
        "drift",
        "errors",
        "fit_kernel",
        "fourier_features",
        "grid",
        "heatmap",
        "load",
        "load_tally",
        "marginals",
        "merge",
        "monomials",
        "neighbour_density",
        "on_columns",
        "open_link",
        "open_stream",
        "plan",
        "plan_stream",
        "private_bounds",
        "private_quantiles",
        "race",
        "read_edges",
        "release",
        "scaled",
        "stream",
    ]


def test_every_public_name_exists_and_is_documented() -> None:
    assert [name for name in hs.__all__ if not getattr(hs, name).__doc__] == []


def test_star_import_brings_exactly_the_public_names() -> None:
    space: dict[str, object] = {}
    exec("from hushsum import *", space)
    assert set(space) - {"__builtins__"} == set(hs.__all__)


@pytest.mark.parametrize(
    ("module", "heavy"),
    [("hushsum", HEAVY), ("hushsum.service.run", MODELS_ONLY), ("hushsum.service.work.worker", MODELS_ONLY)],
)
def test_importing_it_imports_nothing_heavy(module: str, heavy: list[str]) -> None:
    script = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(PACKAGE.parent), "PATH": ""},
    )
    assert done.stdout.strip() == "[]"


def test_every_error_tells_its_exit_code() -> None:
    codes = {
        "HushsumError": 1,
        "UsageError": 2,
        "ClaimError": 2,
        "QuestionsSpent": 2,
        "QuotaExceeded": 2,
        "AlreadyPublished": 2,
        "AlreadyReleased": 2,
        "BudgetExhausted": 3,
        "LedgerUnavailable": 1,
        "ServiceRefused": 1,
        "PeerRefused": 1,
        "PeerLost": 1,
        "IncompatibleTallies": 4,
        "FileRefused": 5,
        "DataRefused": 6,
        "CounterOverflow": 6,
        "SecretRefused": 2,
        "StreamInUse": 2,
    }
    found = {
        name: thing.exit_code
        for name, thing in vars(hs.errors).items()
        if isinstance(thing, type) and issubclass(thing, hs.errors.HushsumError)
    }
    assert found == codes
    assert all(f"{name} " in (hs.errors.__doc__ or "") or name == "HushsumError" for name in codes)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("relase", "release"), ("PrivateClasifier", "PrivateClassifier"), ("GausianKernel", "GaussianKernel")],
)
def test_a_name_with_a_typing_error_is_corrected(typed: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"{typed!r}; did you mean {meant!r}\\?$"):
        getattr(hs, typed)


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    with pytest.raises(AttributeError, match=r"'xyzzy'$"):
        getattr(hs, "xyzzy")  # noqa: B009  # mypy knows that it is not there
    assert not hasattr(hs, "__path_of_nothing__")
