"""Kernels as text."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import (
    LONGEST,
    Kernel,
    KernelExpression,
    as_expression,
    kernel_in_words,
    kernel_names,
    named,
    parameter_names,
)

COLUMNS = ["age", "town", "home income"]
AGE = hs.kernels.on_columns(hs.EuclideanKernel(dim=1, bandwidth=10.0), "age", of=COLUMNS)
TOWN = hs.kernels.on_columns(hs.HammingKernel(dim=1), "town", of=COLUMNS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("euclidean(age, bandwidth=10) * hamming(town)", AGE * TOWN),
        ("euclidean(0, bandwidth=10) * hamming(1)", AGE * TOWN),
        ("0.5*euclidean(age,bandwidth=10.0) - 2 * hamming(town) ** 2", 0.5 * AGE - 2.0 * TOWN**2),
        ("-(hamming(town) + euclidean(age, bandwidth=10)) * 3", -3.0 * TOWN - 3.0 * AGE),
        ("gaussian(age, 'home income', bandwidth=2, power=3)",
         hs.kernels.on_columns(hs.GaussianKernel(2, 2.0, power=3), [0, 2], of=3)),
        ("hamming ** 2", hs.HammingKernel(dim=3, power=2)),
        ("angular(bits=4, projection=dense) * hamming", hs.AngularKernel(3, bits=4) * hs.HammingKernel(3)),
        ("dot_product(radius=2.0) + hamming", hs.kernels.DotProductKernel(3, radius=2.0) +
        hs.HammingKernel(3)),
        ("jaccard('home income') * hamming(town)", hs.kernels.on_columns(hs.JaccardKernel(), 2, of=3) * TOWN),
    ],
)  # fmt: skip
def test_text_means_what_python_does(text: str, expected: Kernel) -> None:
    assert named(text, dim=3, columns=COLUMNS) == expected
    assert KernelExpression(as_expression(expected)).build(3) == expected
    assert "dim" in parameter_names(text)


def test_defaults_are_for_kernels_that_do_not_state_them() -> None:
    text = "euclidean(age) * manhattan(2, bandwidth=7) * hamming(town)"
    found = named(text, dim=3, columns=COLUMNS, bandwidth=10.0)
    assert found == AGE * TOWN * hs.kernels.on_columns(hs.ManhattanKernel(1, 7.0), 2, of=3)
    with pytest.raises(UsageError, match="bandwidth"):
        named("hamming(0) * hamming(1)", dim=2, bandwidth=10.0)
    with pytest.raises(UsageError, match="bandwidth"):
        named("euclidean(0) * hamming(1)", dim=2)


def test_sets_have_no_columns() -> None:
    text = "jaccard - 0.5 * jaccard ** 2"
    assert parameter_names(text) == ()
    assert named(text) == hs.JaccardKernel() - 0.5 * hs.JaccardKernel(power=2)


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "1 + 2", "hamming +", "hamming / 2", "hamming(0) @ hamming(1)", "__import__('os')",
        "hamming.dim",
        "hamming(0)(1)", "[hamming(0)]", "hamming(*a)", "hamming(0, **b)", "hamming(0, dim=3)",
        "hamming(1.5)",
        "hamming(power=[2])", "lambda: hamming(0)", "hamming(0) ** 1.5", "hamming(0) ** hamming(1)",
        "hamming(0) + 1",
        "nothing(0) * hamming(1)", "hamming(5)", "hamming(city)", "euclidean(0, bandwidth=1, bits=2)",
        "(" * 300 + "hamming(0)" + ")" * 300, "-" * 1500 + "hamming(0)", "hamming(0) + " * 300 + "hamming(0)",
        "hamming(0) if 1 else hamming(1)", "hamming(0) == hamming(1)", "x := hamming(0)", "hamming\x00(0)",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        KernelExpression(text).build(2, columns=["a", "b"])


def test_names_of_columns_need_columns() -> None:
    with pytest.raises(UsageError, match="positions from 0"):
        named("hamming(town) * hamming(0)", dim=2)
    plan = hs.plan(records=1000, kernel="euclidean(age, bandwidth=10) * hamming(town)", epsilon=1.0)
    assert plan.best.method == "race"


def test_kernels_are_shown_as_text() -> None:
    assert kernel_in_words(AGE * TOWN) == "euclidean(0, bandwidth=10.0) * hamming(1)"
    assert kernel_in_words(0.5 * AGE - TOWN) == "0.5 * euclidean(0, bandwidth=10.0) - 1.0 * hamming(1)"
    assert KernelExpression("hamming(0)" + " " * (LONGEST - 10)).build(1) == hs.HammingKernel(dim=1)


def test_plain_names_are_names() -> None:
    for name in kernel_names():
        kernel = named(name, dim=2, bandwidth=1.0 if "bandwidth" in parameter_names(name) else None)
        assert KernelExpression(as_expression(kernel)).build(2) == kernel


def test_a_frame_is_released_by_text() -> None:
    import pandas as pd

    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"town": rng.integers(0, 3, 3000), "age": rng.normal(40.0, 10.0, 3000)})
    text = "euclidean(age, bandwidth=20) * hamming(town)"
    f = hs.release(frame, kernel=text, epsilon=4.0, records=3000, insecure_noise_seed=1)
    kernel = named(text, dim=2, columns=["town", "age"])
    assert f.kernel == kernel
    exact = kernel.exact_sum(frame, frame[:9]) / 3000
    np.testing.assert_allclose(f(frame[["age", "town"]][:9]), exact, atol=0.05)
