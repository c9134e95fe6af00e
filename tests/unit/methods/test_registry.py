"""The registry of methods: what suits what."""

from __future__ import annotations

import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import Kernel
from hushsum.methods import method_named, method_names

LINE = hs.GaussianKernel(dim=1, bandwidth=1.0)
TEN = hs.EuclideanKernel(dim=10, bandwidth=1.0)


def suited(kernel: Kernel, delta: float | None) -> set[str]:
    names = {"histogram", "kme", "landmarks", "mwem", "pfda", "privbayes"}
    return {name for name in names if method_named(name).suits(kernel, delta=delta)}


def test_pure_or_not_and_how_many_columns_decide() -> None:
    assert suited(LINE, None) == {"histogram", "landmarks", "mwem", "privbayes"}
    assert suited(LINE, 1e-6) == {"histogram", "kme", "pfda"}
    assert suited(TEN, None) == {"privbayes"}
    assert suited(TEN, 1e-6) == {"kme"}
    assert suited(hs.JaccardKernel(), None) == set()


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=f"one of {', '.join(method_names())}, got 'best'"):
        method_named("best")
