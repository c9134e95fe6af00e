"""Every example in a docstring of the package gives what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import hushsum

PACKAGE = Path(hushsum.__file__).parent
MODULES = sorted(
    ".".join(("hushsum", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
"""The modules that have examples."""

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some examples write files
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS, report=True)
    assert result.attempted > 0, "a finder that finds no example would pass for success"
    assert result.failed == 0


def test_there_are_examples() -> None:
    """A floor under the number of modules with examples, so that none are lost without notice."""
    assert len(MODULES) >= 40
