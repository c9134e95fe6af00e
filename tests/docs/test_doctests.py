"""Every example in a docstring of the package gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import hushsum

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(hushsum.__path__, "hushsum.")
    if not module.name.endswith(("._native", ".__main__"))
)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", ["hushsum", *MODULES])
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some examples write files
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=FLAGS, report=True)
    assert result.failed == 0


def test_there_are_examples() -> None:
    """A floor under the number of examples found, so that a broken finder cannot pass for success."""
    finder = doctest.DocTestFinder()
    examples = [
        test
        for name in ["hushsum", *MODULES]
        for test in finder.find(importlib.import_module(name))
        if test.examples
    ]
    assert len(examples) >= 40
