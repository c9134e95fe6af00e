"""Models in the ONNX format: each record alone, clipped, and told apart by their digests."""

from __future__ import annotations

import base64
import sys
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import DataRefused, IncompatibleTallies, UsageError
from hushsum.tables import PUBLIC_ROWS

TANH = base64.b64decode(
    "CAg6tAEKEQoBeAoBVxIBaCIGTWF0TXVsCg4KAWgKAWISAWEiA0FkZAoMCgFhEgF5IgRUYW5oEgFnKjsIBAgDEAFCAVdKMAAAAD4AAAC+"
    "AAAgPwAAAD4AAAC/AADAPgAAoD8AAIA/AABAvwAAoL8AACC/AAAAACoVCAMQAUIBYkoMAACAPgAAAL8AAAAAWhQKAXgSDwoNCAESCQoD"
    "EgFuCgIIBGIUCgF5Eg8KDQgBEgkKAxIBbgoCCANCBAoAEBE="
)
"""tanh(x·W + b), four columns to three."""
RANDOM = base64.b64decode(
    "CAg6SQoYCgF4EgF5IhBSYW5kb21Ob3JtYWxMaWtlEgFnWhQKAXgSDwoNCAESCQoDEgFuCgIIBGIUCgF5Eg8KDQgBEgkKAxIBbgoCCARC"
    "BAoAEBE="
)
"""RandomNormalLike."""
W = [[0.125, -0.125, 0.625], [0.125, -0.5, 0.375], [1.25, 1.0, -0.75], [-1.25, -0.625, 0.0]]
B = [0.25, -0.5, 0.0]
ROWS = np.random.default_rng(3).normal(size=(40, 4)).astype(np.float32)


def test_without_the_package_it_says_which_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match="onnxruntime"):
        hs.records.OnnxTransform(TANH, radius=1.0)
    with pytest.raises(UsageError, match="radius must be from"):
        hs.records.OnnxTransform(TANH, radius=0.0)


class TestWithRuntime:
    """Where onnxruntime is installed."""

    @pytest.fixture(autouse=True)
    def _runtime(self) -> None:
        pytest.importorskip("onnxruntime")

    def test_records_are_transformed_alone_and_clipped(self) -> None:
        transform = hs.records.OnnxTransform(TANH, radius=0.7)
        images = transform.apply(ROWS)
        exact = np.tanh(ROWS.astype(float) @ np.array(W) + B)
        lengths = np.linalg.norm(exact, axis=1, keepdims=True)
        np.testing.assert_allclose(images, exact * np.minimum(1.0, 0.7 / lengths), atol=1e-5)
        assert np.linalg.norm(images, axis=1).max() <= 0.7 * (1 + 1e-12)
        for at in (0, 17, 39):
            np.testing.assert_array_equal(transform.apply(ROWS[at : at + 1])[0], images[at])
        np.testing.assert_array_equal(transform.apply(ROWS[::-1])[::-1], images)
        by_name = transform.apply_inputs({"x": row[None]} for row in ROWS)
        np.testing.assert_array_equal(by_name, images)

    def test_the_digest_is_in_the_fingerprint_and_the_assumption_in_the_claim(self, tmp_path: Any) -> None:
        path = tmp_path / "model.onnx"
        path.write_bytes(TANH)
        one, other = hs.records.OnnxTransform(path, radius=1.0), hs.records.OnnxTransform(TANH, radius=2.0)
        assert one.digest == hs.records.OnnxTransform(TANH, radius=1.0).digest != other.digest
        kernel = hs.kernels.DotProductKernel(dim=3)
        tally = hs.methods.monomials(kernel, transform=one).add(one.apply(ROWS))
        with pytest.raises(IncompatibleTallies):
            tally.merge(hs.methods.monomials(kernel, transform=other))
        assert tally.release(epsilon=1.0).claim.assumptions == (PUBLIC_ROWS,)

    def test_models_that_cannot_be_used_are_refused(self) -> None:
        with pytest.raises(UsageError, match="the random operation RandomNormalLike"):
            hs.records.OnnxTransform(RANDOM, radius=1.0)
        with pytest.raises(UsageError, match="must be a model in the ONNX format"):
            hs.records.OnnxTransform(b"nothing", radius=1.0)
        with pytest.raises(UsageError, match="output must be one of y"):
            hs.records.OnnxTransform(TANH, radius=1.0, output="z")
        with pytest.raises(DataRefused):
            hs.records.OnnxTransform(TANH, radius=1.0).apply(ROWS[:, :3])
