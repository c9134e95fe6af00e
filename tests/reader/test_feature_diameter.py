"""What a replaced record moves in a box of Fourier features: the reader for web pages agrees with Python.

Files with too little noise for it are refused.
"""

from __future__ import annotations

import io
import json
import subprocess
from base64 import b64encode
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import FileRefused
from hushsum.files import canonical_json
from hushsum.kernels import Kernel
from hushsum.privacy import Relation
from hushsum.tables import Basis, basis_as_json
from tests.fuzz.mutate import joined, split
from tests.reader.node import answered, node

_SCRIPT = Path(__file__).with_name("moved.mjs")
CASES: list[tuple[Kernel, int, Any]] = [
    (hs.GaussianKernel(1, 1.0), 1, (0, 0.1)),
    (hs.GaussianKernel(1, 0.3), 200, (-1, 2)),
    (hs.GaussianKernel(2, 1.0), 300, (0.1, 7)),
    (hs.GaussianKernel(3, 1.0), 100, [(0, 1), (-5, 3), (1e6, 1e6 + 1)]),
    (hs.GaussianKernel(5, 2.0), 50, (-0.7, 0.7)),
    (hs.GaussianKernel(8, 2.0), 7, (-0.02, 0.01)),
    (hs.GaussianKernel(1, 1.0), 2**16 - 1, (0, 1)),
    (hs.LaplacianKernel(1, 1.5), 60, (-2, 2)),
    (hs.LaplacianKernel(2, 1.5), 60, (0, 0.4)),
    (hs.MaternKernel(2, 0.9, smoothness=2.5), 150, (0, 4)),
    (
        hs.kernels.on_columns(hs.GaussianKernel(1, 1.0), 0, of=2)
        * hs.kernels.on_columns(hs.MaternKernel(1, 2.0), 1, of=2),
        80,
        (0, 3),
    ),
    (hs.kernels.scaled(hs.GaussianKernel(2, 0.5), [(0, 1), (0, 3)]), 80, [(0, 1), (0, 3)]),
    (0.5 * hs.GaussianKernel(1, 1.0) + 0.5 * hs.GaussianKernel(1, 0.2), 80, (0, 3)),
    (hs.GaussianKernel(1, 1e20), 50, (0, 1e18)),
]
UNPROVEN: list[tuple[Kernel, int, Any]] = [
    (hs.GaussianKernel(2, 0.001), 30, (-100, 100)),
    (hs.GaussianKernel(1, 1e30), 50, (-2e30, 2e30)),
    (hs.GaussianKernel(8, 1.0), 100, (0, 1)),
    (hs.GaussianKernel(9, 1.0), 9, (0, 1)),
]
LINE = np.random.default_rng(1).normal(5.0, 1.0, size=(300, 1))
CLAIMS: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": 1.0, "mechanism": "discrete laplace"},
    "gamma": {"epsilon": 1.0, "mechanism": "gamma radius"},
    "gaussian": {"rho": 0.5},
}
# Of which the audit recomputes δ, and readers the rest.
WITH_DELTA = {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gamma radius"}


def _basis(kernel: Kernel, features: int, bounds: Any) -> Basis:
    return hs.fourier_features(kernel, features=features, bounds=bounds, seed=3).basis


def _moved(bases: list[Basis]) -> list[list[list[int]]]:
    """Δ1 and Δ2² of a replaced record, and those of a person's, by the reader."""
    lines = b"".join(canonical_json(basis_as_json(each)["parameters"]) + b"\n" for each in bases)
    done = subprocess.run([node(), str(_SCRIPT)], input=lines, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [[[int(norm) for norm in each] for each in json.loads(line)] for line in done.stdout.splitlines()]


def test_both_readers_compute_the_same_number() -> None:
    bases = [_basis(*case) for case in (*CASES, *UNPROVEN)]
    for basis, (record, person) in zip(bases, _moved(bases), strict=True):
        expected = basis.sensitivity(Relation.REPLACE)
        assert record == [expected.l1, expected.l2_squared], basis
        change = basis.unit_change("person", 1, Relation.REPLACE).table
        assert person == [change.l1, change.l2_squared], basis


def test_the_cases_are_those_that_they_are_meant_to_be() -> None:
    """In a box that is known a record moves less; a narrow one moves a person's records further than one."""
    for case in CASES:
        basis = _basis(*case)
        assert basis.sensitivity(Relation.REPLACE).l2_squared < 3 * 2**20 * case[1]
    for case in UNPROVEN:
        assert _basis(*case).sensitivity(Relation.REPLACE).l2_squared == 4 * 2**20 * case[1]
    narrow = _basis(*CASES[0])
    person = narrow.unit_change("person", 1, Relation.REPLACE).table
    assert person.l2_squared > narrow.sensitivity(Relation.REPLACE).l2_squared


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("per_unit", [None, 3])
@pytest.mark.parametrize("bounds", [(4, 6), (0, 10)])
def test_a_file_with_too_little_noise_is_refused(
    claim: str, per_unit: int | None, bounds: tuple[int, int]
) -> None:
    tally = hs.fourier_features(
        hs.GaussianKernel(1, 1.0), features=50, bounds=bounds, seed=1, max_per_unit=per_unit
    )
    units = None if per_unit is None else [str(place) for place in range(len(LINE))]
    function = tally.add(LINE, units=units).release(**CLAIMS[claim], relation="replace")
    assert claim in str(function.claim.mechanism)
    stream = io.BytesIO()
    function.save(stream)
    forged = _with_less_noise(stream.getvalue())
    read: Any = hs.load(io.BytesIO(forged))
    with pytest.raises(FileRefused):
        read([[5.0]])
    taken, refused = answered(
        [{"base64": b64encode(each).decode(), "queries": [[5.0]]} for each in (stream.getvalue(), forged)]
    )
    assert taken["answers"]["value"] == pytest.approx(function([[5.0]]).tolist(), rel=1e-5)
    assert refused["kind"] == "damaged"


@pytest.mark.parametrize("claim", [*CLAIMS.values(), WITH_DELTA], ids=str)
def test_a_number_of_records_without_noise_is_refused_unless_it_is_public(claim: dict[str, Any]) -> None:
    tally = hs.fourier_features(hs.GaussianKernel(1, 1.0), features=50, seed=1).add(LINE)
    requests, read = [], []
    for relation in ("add/remove", "replace"):
        stream = io.BytesIO()
        tally.release(**claim, relation=relation).save(stream)
        prefix, header, payload = split(stream.getvalue())
        about = json.loads(header)
        about["count"] = {"value": len(LINE), "noise": {"mechanism": "none", "parameter": "0"}}
        data = joined(prefix, canonical_json(about), payload)
        requests.append({"base64": b64encode(data).decode()})
        read.append(_read_by_python(data))
    assert read == ["refused" not in each for each in answered(requests)] == [False, True]


def _read_by_python(data: bytes) -> bool:
    try:
        read: Any = hs.load(io.BytesIO(data))
        read([[5.0]])
    except FileRefused:
        return False
    return True


def _with_less_noise(data: bytes) -> bytes:
    """The file with a thousandth less of the parameter that it states for its cells."""
    prefix, header, payload = split(data)
    about = json.loads(header)
    about["noise"]["parameter"] = str(Fraction(about["noise"]["parameter"]) * Fraction(999, 1000))
    return joined(prefix, canonical_json(about), payload)
