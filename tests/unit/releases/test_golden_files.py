"""Golden files must still be read, and answer the same numbers."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

import hushsum as hs
from hushsum.releases import NoisyTable
from tests.exact_tallies import exact_count, exact_table
from tests.golden import make

RELEASED = sorted(make.FOLDER.glob("*.hush"))


def test_there_are_golden_files_of_every_kernel_basis_and_promise() -> None:
    names = {path.stem for path in RELEASED}
    assert {f"{name}-epsilon" for name in (*make.KERNELS, *make.COEFFICIENTS)} <= names
    assert {f"euclidean-{promise}" for promise in make.PROMISES} <= names


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_a_released_file_answers_as_it_did(path: Path) -> None:
    f = hs.load(path)
    assert isinstance(f, NoisyTable)
    kernel, records = make.KERNELS.get(path.stem.split("-")[0], (make.WIDE, make.POINTS))
    assert f.kernel == kernel
    expected = json.loads((make.FOLDER / "expected.json").read_text())[path.name]
    found = make.answers(f, records[:3])
    assert found["claim"] == expected["claim"]
    for name in ("count", "mean", "sum", "stderr"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_a_released_file_is_written_again_byte_for_byte(path: Path) -> None:
    stream = io.BytesIO()
    hs.load(path).save(stream)
    assert stream.getvalue() == path.read_bytes()


def made(name: str) -> hs.Tally:
    if name in make.COEFFICIENTS:
        return make.COEFFICIENTS[name]().add(make.POINTS)
    kernel, records = make.KERNELS[name]
    return make.empty(kernel).add(records)


@pytest.mark.parametrize("name", [*make.KERNELS, *make.COEFFICIENTS])
def test_a_tally_is_read_and_merges_with_a_new_one(name: str) -> None:
    old, new = hs.load_tally(make.FOLDER / f"{name}.tally"), made(name)
    assert old.kernel == new.kernel
    np.testing.assert_array_equal(exact_table(old), exact_table(new))
    assert exact_count(old.merge(new)) == 80


def test_an_encrypted_tally_is_read() -> None:
    old = hs.load_tally(make.FOLDER / "encrypted.tally", encryption_key=make.KEY)
    np.testing.assert_array_equal(exact_table(old), exact_table(made("euclidean")))


def test_a_tally_of_persons_remembers_them() -> None:
    old = hs.load_tally(make.FOLDER / "persons.tally")
    assert old.max_per_unit == 3
    assert exact_count(old) == 27
    old.add(make.POINTS, units=[i % 9 for i in range(40)])
    assert exact_count(old) == 27
