"""Published methods are found by name by who never imported them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hushsum as hs
from hushsum.baselines import pfda, trigonometric

KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.2)


def run(program: str) -> str:
    unknown = "import sys, hushsum as hs; assert 'hushsum.baselines' not in sys.modules; "
    command = [sys.executable, "-c", unknown + program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("kind", ["table", "curve"])
def test_a_file_of_a_baseline_is_read_without_importing_it(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "f.hush"
    if kind == "curve":
        pfda([[0.3]] * 200, KERNEL, bounds=(0, 1), epsilon=1.0, steps=16).save(path)
    else:
        trigonometric(KERNEL, bounds=(0, 1), terms=4).add([[0.3]] * 200).release(epsilon=1.0).save(path)
    program = f"print(hs.load({str(path)!r})([[0.3]]))"
    assert run(program).strip() == str(hs.load(path)([[0.3]]))


def test_a_method_is_found_by_its_name() -> None:
    assert run("print(hs.methods.method_named('privbayes').name)").strip() == "privbayes"
    assert run("print('kme' in hs.methods.method_names())").strip() == "True"
