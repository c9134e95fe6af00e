"""The public interface: its names, what importing it costs, suggestions for misspelled names."""

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


def test_every_public_name_exists_and_is_documented() -> None:
    assert [name for name in hs.__all__ if not getattr(hs, name).__doc__] == []


def test_star_import_brings_exactly_the_public_names() -> None:
    space: dict[str, object] = {}
    exec("from hushsum import *", space)
    assert set(space) - {"__builtins__"} == set(hs.__all__)


@pytest.mark.parametrize(
    ("module", "heavy"),
    [("hushsum", HEAVY), ("hushsum.service.run", MODELS_ONLY), ("hushsum.service.jobs.worker", MODELS_ONLY)],
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


def test_the_documented_exit_codes() -> None:
    errors = hs.errors
    assert (errors.HushsumError.exit_code, errors.UsageError.exit_code) == (1, 2)
    assert (errors.BudgetExhausted.exit_code, errors.IncompatibleTallies.exit_code) == (3, 4)
    assert (errors.FileRefused.exit_code, errors.DataRefused.exit_code) == (5, 6)


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
