"""Inner products: values, the ball, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import INNER_PRODUCT, Kernel, kernel_as_json, kernel_from_json, named

RNG = np.random.default_rng(2)
X, Q = RNG.normal(size=(30, 5)), RNG.normal(size=(4, 5))


@pytest.mark.parametrize("radius", [0.5, 1.0, 7.0])
def test_values_are_those_of_records_shortened_to_the_radius(radius: float) -> None:
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    inside = X.astype(np.float32) * np.minimum(1.0, radius / lengths)
    products = inside @ Q.T / radius**2
    np.testing.assert_allclose(
        hs.kernels.DotProductKernel(5, radius).similarity(X, Q), products, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        hs.kernels.PolynomialKernel(5, radius).similarity(X, Q), products**2, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("kernel", [hs.kernels.DotProductKernel(4, 2.0), hs.kernels.PolynomialKernel(4)])
def test_it_is_one_where_vectors_of_the_declared_length_coincide(kernel: Any) -> None:
    x = np.full((1, 4), kernel.radius / 2.0)
    assert kernel.similarity(x, x)[0, 0] == pytest.approx(1.0)
    assert kernel_from_json(kernel_as_json(kernel)) == kernel
    assert INNER_PRODUCT.kernels() == ["dot-product", "polynomial"]


def test_only_the_first_power_has_a_sign() -> None:
    assert hs.kernels.DotProductKernel.signed
    assert not hs.kernels.PolynomialKernel.signed
    assert not hs.EuclideanKernel.signed


def test_they_are_known_by_name() -> None:
    assert named("dot-product", dim=3, radius=2.0) == hs.kernels.DotProductKernel(3, 2.0)
    assert named("polynomial", dim=3) == hs.kernels.PolynomialKernel(3)
    with pytest.raises(UsageError, match="has no bandwidth"):
        named("dot-product", dim=3, bandwidth=1.0)


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), float("inf"), 1e20, "wide"])
def test_a_radius_is_a_number_above_0(radius: Any) -> None:
    for kind in (hs.kernels.DotProductKernel, hs.kernels.PolynomialKernel):
        with pytest.raises(UsageError, match="radius"):
            kind(3, radius)


@pytest.mark.parametrize("degree", [1, 3, 2.0, True, "2"])
def test_the_only_degree_is_2(degree: Any) -> None:
    with pytest.raises(UsageError, match="degree must be 2"):
        hs.kernels.PolynomialKernel(3, degree=degree)


@pytest.mark.parametrize("kernel", [hs.kernels.DotProductKernel(1), hs.kernels.PolynomialKernel(1)])
def test_bounds_are_refused(kernel: Kernel) -> None:
    with pytest.raises(UsageError, match="radius"):
        hs.methods.monomials(kernel, bounds=(0, 1))
    with pytest.raises(UsageError):
        hs.plan(records=1000, kernel=kernel, bounds=(0, 1), epsilon=1.0)
