"""What must hold for the bytes of a ``.hush`` file, whoever wrote them."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from hushsum.errors import FileRefused, UsageError
from hushsum.kernels import composed_names
from hushsum.models import PrivateModel, model_of
from hushsum.releases import Bundle
from hushsum.releases import load_released as load


def check_hush(data: bytes) -> bool:
    """Refused as a file, or usable in every way; whether it was read."""
    try:
        found = load(io.BytesIO(data))
        if isinstance(found, Bundle):
            found = model_of(found)
    except FileRefused:
        return False
    try:
        use(found)
    except FileRefused:
        # The pages of a large table are checked when they are used.
        return False
    return True


def use(found: Any) -> None:
    """Every way of reading a function or a model; with queries that it must take."""
    repr(found)
    if isinstance(found, PrivateModel):
        use_model(found)
        return
    found.claim.sentence()
    assert np.isfinite(found.count)
    queries = queries_for(found.kernel)
    for values in (found(queries), found.sum(queries), found.query(queries).value):
        assert len(values) == 2
    kept = io.BytesIO()
    found.save(kept)
    load(io.BytesIO(kept.getvalue()))


def use_model(model: Any) -> None:
    """Predict, sample, or score at two points."""
    claim = model.claim_
    claim.sentence()
    points = np.zeros((2, model.n_features_in_))
    for name in ("predict", "decision_function", "score_samples", "predict_proba", "transform"):
        if hasattr(model, name):
            assert len(getattr(model, name)(points)) == 2
    if hasattr(model, "sample"):
        # Nothing to draw from where nothing stands out of the noise: a statement about the data.
        with contextlib.suppress(UsageError):
            model.sample(3)
    if hasattr(model, "top_candidates"):
        model.top_candidates(points, n_candidates=1)


def _products(kernel: Any) -> list[Any]:
    return [each.kernel for each in kernel.components] if hasattr(kernel, "components") else [kernel]


def _set_columns(kernel: Any) -> list[int]:
    factors = getattr(kernel, "factors", ())
    return [each.columns[0] for each in factors if each.kernel.dim is None]


def queries_for(kernel: Any) -> Any:
    """Two queries that the kernel takes."""
    dim = getattr(kernel, "dim", None)
    if dim is None:
        return [[1, 2], [3]]
    if kernel.name == "hamming":
        return np.ones((2, dim), np.int64)
    if kernel.name in composed_names():
        sets = {column for part in _products(kernel) for column in _set_columns(part)}
        return [[[1, 2] if column in sets else 1 for column in range(dim)]] * 2
    return np.full((2, dim), 0.5)
