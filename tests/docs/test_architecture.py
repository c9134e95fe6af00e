"""CONTRIBUTING.md has every package, and the architecture page has the modules that really run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import package_tree
from tests.docs.pages import DOCS, ROOT
from tests.flows import FLOWS, PAGE, with_modules


def test_every_package_has_a_layer() -> None:
    named = {name for layer in package_tree.layers() for name in layer}
    assert set(package_tree.packages()) <= named


def test_the_tree_is_as_the_packages_say() -> None:
    expected = package_tree.page()
    assert package_tree.PAGE.read_text(encoding="utf-8") == expected, "run python -m tests.docs.package_tree"


def test_the_drawing_has_the_layers_of_the_import_rules() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Layers\n")[1]
    lines = section.split("```text\n")[1].split("```")[0].splitlines()
    for line, names in zip(lines, package_tree.layers(), strict=True):
        assert line.split()[: len(names)] == names


def test_the_flows_are_as_they_run() -> None:
    """In a process of its own, because a cache that is warm would hide a module."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.flows", "--json"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    modules = json.loads(run.stdout)
    assert list(modules) == list(FLOWS)
    text = PAGE.read_text(encoding="utf-8")
    assert with_modules(text, modules) == text, "run python -m tests.flows"


@pytest.mark.parametrize("page", [DOCS / "explanation" / "architecture.md", ROOT / "CONTRIBUTING.md"])
def test_every_file_that_is_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|md|toml|pyi|hpp|cpp))`", text))
    assert named
    recipes = {name for name in named if "yours" in name}
    missing = [
        name
        for name in named - recipes
        if not any((folder / name).exists() for folder in (ROOT, ROOT / "src" / "hushsum", ROOT / "src"))
    ]
    assert not missing
