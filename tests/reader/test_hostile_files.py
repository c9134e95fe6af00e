"""Files whose checksum holds and whose contents do not: refused, or usable, and never anything else."""

from __future__ import annotations

import io
import json
import random
from base64 import b64encode
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import HushsumError
from hushsum.models import PrivateModel
from hushsum.releases import NoisyTable, ReleasedFunction, load_released
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
    """Whether Python reads a file and, of a model, all of its parts."""
    try:
        found = hs.load(io.BytesIO(data))
        if isinstance(found, PrivateModel):
            list(found.released_.parts.values())
        elif isinstance(found, NoisyTable):
            found.check_noise()
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


@cache
def _stated() -> list[bytes]:
    """Files whose noise is stated in different ways: steps of streams, vectors, grids, series, models."""
    grid = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.3), bounds=(0, 1))
    rows = hs.race(hs.EuclideanKernel(1, 1.0), rows=3, width=4)
    plane: list[list[float]] = [[0.1, 0.2]] * 40
    tallies: list[Callable[[], hs.Tally]] = [
        lambda: hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.3), bounds=[(0, 1)] * 2),
        lambda: hs.methods.monomials(hs.kernels.DotProductKernel(dim=2, radius=1.0)),
        lambda: hs.methods.monomials(hs.kernels.PolynomialKernel(dim=2, radius=1.0)),
    ]
    over_time: list[dict[str, Any]] = [
        {"rho": 0.5},
        {"epsilon": 1.0},
        {"epsilon": 1.0, "delta": 1e-6, "window": 2},
        {"rho": 0.5, "horizon": None},
        {"epsilon": 1.0, "horizon": None},
    ]
    at_once: list[dict[str, Any]] = [{"rho": 0.5}, {"epsilon": 1.0}, {"rho": 0.5, "relation": "replace"}]
    made: list[Any] = [
        hs.stream(tally, insecure_noise_seed=1, **({"horizon": 5} | more)).add([[0.2], [0.4]]).step()
        for tally in (grid, rows)
        for more in over_time
    ]
    for make in tallies:
        for more in at_once:
            made.append(make().add(plane).release(insecure_noise_seed=1, **more))
    files = []
    for each in made:
        buffer = io.BytesIO()
        each.save(buffer)
        files.append(buffer.getvalue())
    return files


def _less_noise(data: bytes, rng: random.Random) -> bytes:
    """One number of the claim or of the noise changed by a little, or one letter of a name."""
    prefix, header, payload = split(data)
    about = json.loads(header)
    where = rng.choice([about["claim"], about["noise"], about["count"]["noise"], about])
    if "stream" in about and where is about:
        where = rng.choice([about["stream"]["noise"]["table"], about["stream"]["noise"]["count"]])
    name = rng.choice(sorted(name for name, value in where.items() if isinstance(value, str)))
    if name in ("parameter", "epsilon", "rho"):
        factor = rng.choice([Fraction(999, 1000), Fraction(99, 100), Fraction(1, 2), Fraction(1001, 1000)])
        where[name] = str(Fraction(where[name]) * factor)
    else:
        at = rng.randrange(len(where[name]))
        where[name] = where[name][:at] + "9" + where[name][at + 1 :]
    return joined(prefix, json.dumps(about).encode(), payload)


@pytest.mark.parametrize("change", [_less_noise, mutated_hush], ids=["less noise", "anything"])
def test_what_python_refuses_is_refused(change: Callable[[bytes, random.Random], bytes]) -> None:
    rng = random.Random(12)
    _check([*_stated(), *(change(data, rng) for data in _stated() for _ in range(MUTANTS))])


def test_what_states_its_noise_rightly_is_read() -> None:
    found = answered([{"base64": b64encode(data).decode(), "probe": True} for data in _stated()])
    assert not [each for each in found if "refused" in each or "threw" in each]


@pytest.mark.parametrize("statement", [{"note": "as agreed", "year": 2026}, ["note"], {"note": {"more": 1}}])
def test_a_statement_of_a_later_version_is_shown_if_it_is_one(statement: object) -> None:
    prefix, header, payload = split((tables.FOLDER / "grid-epsilon.hush").read_bytes())
    data = joined(prefix, json.dumps({**json.loads(header), "statement": statement}).encode(), payload)
    (found,) = answered([{"base64": b64encode(data).decode(), "probe": True}])
    plain = isinstance(statement, dict) and "year" in statement
    assert found.get("statement") == (statement if plain else None)
    assert ("refused" in found) != plain


def test_an_empty_model_is_refused() -> None:
    header = {"type": "bundle", "about": {}, "arrays": [], "parts": [], "producer": "x"}
    header["claim"] = json.loads(split(_seeds()[0])[1])["claim"]
    for about in ({}, {"model": "PrivateModes"}):
        data = joined(_seeds()[0][:24], json.dumps({**header, "about": about}).encode(), b"")
        assert not _read_by_python(data)
        (found,) = answered([{"base64": b64encode(data).decode(), "probe": True}])
        assert "refused" in found


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
