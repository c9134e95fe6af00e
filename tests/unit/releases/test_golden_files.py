"""Files of every released format version must still be read, and answer the same numbers."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import IncompatibleTallies
from hushsum.releases import TableFunction
from tests.golden import make

VERSIONS = list(make.FOLDERS)
RELEASED = sorted(path for folder in make.FOLDERS.values() for path in folder.glob("*.hush"))


def named(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


@pytest.mark.parametrize("version", VERSIONS)
def test_there_are_golden_files_of_every_kernel_and_promise(version: int) -> None:
    names = {path.stem for path in make.FOLDERS[version].glob("*.hush")}
    assert {f"{kernel}-epsilon" for kernel in make.KERNELS} <= names
    assert {f"euclidean-{promise}" for promise in make.PROMISES} <= names


@pytest.mark.parametrize("path", RELEASED, ids=named)
def test_a_released_file_answers_as_it_did(path: Path) -> None:
    f = hs.load(path)
    assert isinstance(f, TableFunction)
    kernel, records = make.KERNELS[path.stem.split("-")[0]]
    assert f.kernel == kernel
    expected = json.loads((path.parent / "expected.json").read_text())[path.name]
    found = make.answers(f, records[:3])
    assert found["claim"] == expected["claim"]
    for name in ("count", "mean", "sum", "stderr"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("path", RELEASED, ids=named)
def test_a_released_file_is_written_again_byte_for_byte(path: Path) -> None:
    stream = io.BytesIO()
    hs.load(path).save(stream)
    assert stream.getvalue() == path.read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", make.KERNELS)
def test_a_tally_is_read_and_merges_with_a_new_one(version: int, name: str) -> None:
    kernel, records = make.KERNELS[name]
    old = hs.load_tally(make.FOLDERS[version] / f"{name}.tally")
    new = make.empty(kernel, version).add(records)
    np.testing.assert_array_equal(old._state()["table"], new._state()["table"])
    assert old.merge(new)._state()["count"] == 80


def test_tallies_of_different_hash_functions_do_not_merge() -> None:
    kernel, _ = make.KERNELS["euclidean"]
    with pytest.raises(IncompatibleTallies):
        hs.load_tally(make.FOLDERS[1] / "euclidean.tally").merge(make.empty(kernel, 2))


@pytest.mark.parametrize("version", VERSIONS)
def test_an_encrypted_tally_is_read(version: int) -> None:
    kernel, records = make.KERNELS["euclidean"]
    old = hs.load_tally(make.FOLDERS[version] / "encrypted.tally", encryption_key=make.KEY)
    fresh = make.empty(kernel, version).add(records)
    np.testing.assert_array_equal(old._state()["table"], fresh._state()["table"])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_tally_of_persons_remembers_them(version: int) -> None:
    old = hs.load_tally(make.FOLDERS[version] / "persons.tally")
    assert old.max_per_unit == 3
    assert old._state()["count"] == 27
    old.add(make.POINTS, units=[i % 9 for i in range(40)])
    assert old._state()["count"] == 27
