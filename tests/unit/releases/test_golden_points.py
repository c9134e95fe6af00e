"""Golden files of points and curves must still be read, and answer the same."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import hushsum as hs
from tests.golden import make_points as make

EXPECTED = json.loads((make.FOLDER / "expected.json").read_text())


def test_there_is_a_golden_file_of_each() -> None:
    assert {path.stem for path in make.FOLDER.glob("*.hush")} == set(make.MAKERS) == set(EXPECTED)


@pytest.mark.parametrize("name", make.MAKERS)
def test_a_released_file_answers_as_it_did(name: str) -> None:
    found, expected = make.answers(hs.load(make.FOLDER / f"{name}.hush")), EXPECTED[name]
    assert (found["claim"], found["kernel"]) == (expected["claim"], expected["kernel"])
    for key in ("count", "mean", "sum", "stderr"):
        values, promised = (np.array(each[key], dtype=np.float64) for each in (found, expected))
        np.testing.assert_allclose(values, promised, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", make.MAKERS)
def test_a_released_file_is_written_again_byte_for_byte(name: str) -> None:
    path = make.FOLDER / f"{name}.hush"
    stream = io.BytesIO()
    hs.load(path).save(stream)
    assert stream.getvalue() == path.read_bytes()
