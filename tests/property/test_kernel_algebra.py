"""The algebra of kernels: any expression has one form, the values that arithmetic gives, and a text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import hushsum as hs
from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import Kernel, KernelExpression, as_expression, kernel_as_json, kernel_from_json

RECORDS = np.column_stack((np.linspace(-2.0, 2.0, 7), np.arange(7) % 3, np.cos(np.arange(7))))
PLAIN: list[Kernel] = [
    hs.EuclideanKernel(dim=3, bandwidth=2.0),
    hs.kernels.on_columns(hs.EuclideanKernel(dim=1, bandwidth=1.0), 0, of=3),
    hs.kernels.on_columns(hs.HammingKernel(dim=1), 1, of=3),
    hs.kernels.on_columns(hs.ManhattanKernel(dim=2, bandwidth=3.0), [2, 0], of=3),
    hs.kernels.on_columns(hs.kernels.AsymmetricAngularKernel(dim=2, bits=2, radius=3.0), [0, 2], of=3),
]
WEIGHTS = st.sampled_from([-2.0, -0.5, 0.25, 1.0, 3.0])
kernels = st.recursive(
    st.sampled_from(PLAIN),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: _or_first(lambda: pair[0] * pair[1], pair[0])),
        st.tuples(inner, inner).map(lambda pair: _or_first(lambda: pair[0] + pair[1], pair[0])),
        st.tuples(WEIGHTS, inner).map(lambda pair: pair[0] * pair[1]),
    ),
    max_leaves=5,
)


def _or_first(make: Callable[[], Kernel], first: Kernel) -> Kernel:
    """The kernel, or its first part where the sum would be zero or too long."""
    try:
        return make()
    except UsageError:
        return first


@settings(max_examples=60, deadline=None)
@given(kernels, kernels)
def test_values_are_those_of_arithmetic(one: Kernel, other: Kernel) -> None:
    x, y = (kernel.similarity(RECORDS, RECORDS) for kernel in (one, other))
    cases: list[tuple[Callable[[], Kernel], Floats]] = [
        (lambda: one * other, x * y),
        (lambda: one + other, x + y),
        (lambda: one - other, x - y),
    ]
    for make, expected in cases:
        try:
            made = make()
        except UsageError:
            continue
        np.testing.assert_allclose(made.similarity(RECORDS, RECORDS), expected, atol=1e-9 * _size(x, y))


@settings(max_examples=60, deadline=None)
@given(kernels)
def test_files_and_text_bring_a_kernel_back(kernel: Kernel) -> None:
    assert kernel_from_json(json.loads(json.dumps(kernel_as_json(kernel)))) == kernel
    assert KernelExpression(as_expression(kernel)).build(3) == kernel


@settings(max_examples=40, deadline=None)
@given(kernels, kernels, kernels)
def test_products_are_commutative_and_associative(one: Kernel, two: Kernel, three: Kernel) -> None:
    """Up to the order of the components, and rounding of their weights."""
    try:
        first, second = (one * two) * three, one * (three * two)
    except UsageError:
        return
    np.testing.assert_allclose(
        first.similarity(RECORDS, RECORDS), second.similarity(RECORDS, RECORDS), rtol=1e-9, atol=1e-6
    )


def _size(*values: Floats) -> float:
    return math.prod(max(1.0, float(np.abs(each).max())) for each in values)
