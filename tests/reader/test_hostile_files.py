"""Files whose checksum holds and whose contents do not: refused, or usable, and never anything else."""

from __future__ import annotations

import io
import json
import random
from base64 import b64encode
from typing import Any

import numpy as np
import pytest

from hushsum.errors import HushsumError
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.load import load_released
from tests.fuzz.mutate import joined, mutated_hush, split
from tests.golden import make as tables
from tests.golden import make_points as points
from tests.reader.node import answered

MUTANTS = 12
MORE_MUTANTS = 400


def _seeds() -> list[bytes]:
    files = [*tables.FOLDER.glob("*.hush"), *points.FOLDER.glob("*.hush")]
    return [path.read_bytes() for path in sorted(files)]


def _mutants(number: int, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    return [mutated_hush(data, rng) for data in _seeds() for _ in range(number)]


def _read_by_python(data: bytes) -> bool:
    try:
        load_released(io.BytesIO(data))
    except HushsumError:
        return False
    return True


def _check(mutants: list[bytes]) -> None:
    requests: list[dict[str, Any]] = [{"base64": b64encode(each).decode(), "probe": True} for each in mutants]
    found = answered(requests, timeout=600.0)
    assert len(found) == len(mutants)
    for data, each in zip(mutants, found, strict=True):
        assert "threw" not in each, each["threw"]
        if "refused" not in each:
            assert _read_by_python(data)
    assert any("refused" in each for each in found)


def test_mutants_are_refused_or_read() -> None:
    _check(_mutants(MUTANTS, seed=7))


@pytest.mark.parametrize(
    ("kernel", "bandwidth"),
    [("gaussian", 1e6), ("euclidean", 1e-30), ("euclidean", 1e30), ("laplacian", 1e30)],
)
def test_kernels_of_any_width_are_read_or_refused(kernel: str, bandwidth: float) -> None:
    prefix, header, payload = split((tables.FOLDER / "grid-epsilon.hush").read_bytes())
    about = json.loads(header)
    extra = {"projection": "dense"} if kernel == "euclidean" else {}
    about["kernel"] = {"name": kernel, "parameters": {"dim": 2, "bandwidth": bandwidth, "power": 1, **extra}}
    data = joined(prefix, json.dumps(about).encode(), payload)
    (found,) = answered([{"base64": b64encode(data).decode(), "probe": True}])
    assert "answers" in found or found["kind"] == "unsupported"


def test_a_total_that_is_not_that_of_the_cells_is_refused() -> None:
    """Python estimates the number of records from it, and would answer otherwise than the cells do."""
    prefix, header, payload = split((tables.FOLDER / "euclidean-mapped.hush").read_bytes())
    about = json.loads(header)
    about["table"]["cells"]["total"] += 1
    data = joined(prefix, json.dumps(about).encode(), payload)
    assert _read_by_python(data)
    (found,) = answered([{"base64": b64encode(data).decode(), "probe": True}])
    assert found["kind"] == "damaged"


def test_what_both_readers_take_they_answer_alike() -> None:
    """Numbers at one query, of files that nobody wrote; points fitted to functions have no errors here."""
    mutants = _mutants(MUTANTS, seed=6)
    requests = [{"base64": b64encode(each).decode(), "probe": True} for each in mutants]
    compared = 0
    for data, found in zip(mutants, answered(requests, timeout=600.0), strict=True):
        if "answers" not in found:
            continue
        function = load_released(io.BytesIO(data))
        assert isinstance(function, ReleasedFunction)
        assert found["claim"]["sentence"] == function.claim.sentence()
        if function.dim is None or any(isinstance(each, list) for each in found["probe"]):
            continue
        own = function.query(np.array([found["probe"]], dtype=np.float64))
        value, error = found["answers"]["value"][0], found["answers"]["stderr"][0]
        np.testing.assert_allclose(float(value), own.value[0], rtol=1e-9, atol=1e-12)
        if error != "NaN":
            np.testing.assert_allclose(float(error), own.stderr[0], rtol=1e-9, atol=1e-12)
        compared += 1
    assert compared > 30


@pytest.mark.slow
def test_many_mutants_are_refused_or_read() -> None:
    _check(_mutants(MORE_MUTANTS, seed=8))
