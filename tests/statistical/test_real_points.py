"""Salaries and skin tones: the published methods reach the errors that the documentation tells.

Needs ``HUSHSUM_DATA``. Seeds of the noise are fixed, so each test always gives the same numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.baselines import histogram, kme, mwem, pfda, privbayes

DATA = os.environ.get("HUSHSUM_DATA", "")
pytestmark = pytest.mark.skipif(not DATA, reason="HUSHSUM_DATA is not set: no real data")

Floats = NDArray[np.float64]
PAY = hs.GaussianKernel(dim=1, bandwidth=5_000.0)
QUERIES = np.linspace(10_000, 250_000, 200)[:, None]
COLOUR = hs.GaussianKernel(dim=3, bandwidth=5.0 / np.sqrt(2.0))


@pytest.fixture(scope="module")
def salaries() -> Floats:
    import pyarrow.parquet as pq

    table = pq.read_table(Path(DATA) / "nyc_payroll_sample.parquet", columns=["pay_basis", "base_salary"])
    yearly = np.array([str(each).strip() == "per Annum" for each in table["pay_basis"].to_pylist()])
    pay: Floats = table["base_salary"].to_numpy().astype(np.float64)[yearly, None]
    return pay


@pytest.fixture(scope="module")
def pixels() -> NDArray[np.float32]:
    import pyarrow.parquet as pq

    table = pq.read_table(Path(DATA) / "skin_segmentation.parquet", columns=["R", "G", "B"])
    return np.column_stack([table[name].to_numpy() for name in ("R", "G", "B")]).astype(np.float32)


CASES: dict[str, tuple[Callable[..., Any], dict[str, Any], float]] = {
    "histogram": (histogram, {}, 0.0007),
    "privbayes": (privbayes, {"bins": 120, "size": 100_000}, 0.0015),
    "mwem": (mwem, {"rounds": 20}, 0.005),
    "kme": (kme, {}, 0.0006),
    "pfda": (pfda, {"penalty": 1e-4}, 0.0006),
}


@pytest.mark.parametrize("name", CASES)
def test_salaries(salaries: Floats, name: str) -> None:
    method, options, at_most = CASES[name]
    truth = PAY.exact_sum(np.clip(salaries, 0, 300_000), QUERIES) / len(salaries)
    errors = [
        np.abs(
            method(salaries, PAY, bounds=(0, 300_000), epsilon=1.0, insecure_noise_seed=seed, **options)(
                QUERIES
            )
            - truth
        ).mean()
        for seed in range(3)
    ]
    assert np.mean(errors) < at_most
    assert np.mean(errors) > at_most / 20, "better than any noise allows: the test looks at something else"


def test_a_lattice_of_points_sees_skin_and_a_few_points_do_not(pixels: NDArray[np.float32]) -> None:
    pixels = pixels[::4]
    queries = pixels[:: len(pixels) // 100]
    truth = COLOUR.exact_sum(pixels, queries) / len(pixels)

    def error(**options: Any) -> float:
        f = kme(pixels, COLOUR, bounds=(0, 255), epsilon=1.0, insecure_noise_seed=1, **options)
        return float(np.abs(f(queries) - truth).mean())

    assert error(lattice=64) < 0.0003
    assert error(points=500) > 0.5 * truth.mean()
