"""CONTRIBUTING.md has every package, and the names on the architecture page exist."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import hushsum
from tests.docs import package_tree
from tests.docs.pages import DOCS, ROOT

PAGE = DOCS / "explanation" / "architecture.md"


def test_every_package_has_a_layer() -> None:
    named = {name for layer in package_tree.layers() for name in layer}
    assert set(package_tree.packages()) <= named


def test_the_tree_is_as_the_packages_say() -> None:
    expected = package_tree.page()
    assert package_tree.PAGE.read_text(encoding="utf-8") == expected, "run python -m tests.docs.package_tree"


def test_every_folder_of_tests_is_described() -> None:
    text = package_tree.PAGE.read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `tests/(\w+)` \|", text, flags=re.M))
    folders = {
        each.name for each in (ROOT / "tests").iterdir() if list(each.glob("*.py")) or each.name == "golden"
    }
    assert described == folders


def test_the_drawing_has_the_layers_of_the_import_rules() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## Layers\n")[1]
    lines = section.split("```text\n")[1].split("```")[0].splitlines()
    for line, names in zip(lines, package_tree.layers(), strict=True):
        assert line.split()[: len(names)] == names


@pytest.mark.parametrize("page", [PAGE, ROOT / "CONTRIBUTING.md"])
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


def by_hand() -> str:
    """What is in backticks or in a drawing of the architecture page."""
    text = PAGE.read_text(encoding="utf-8")
    drawings = re.findall(r"```text\n(.*?)```", text, flags=re.S)
    return "\n".join([*drawings, *re.findall(r"`([^`\n]+)`", text)])


def test_every_module_in_a_drawing_or_in_backticks_exists() -> None:
    """``privacy/spending`` is a module, ``tally/release.release_table`` a function of one."""
    named = set(re.findall(r"(?<![\w/.])((?:[a-z_]+/)+[a-z_]+)((?:\.\w+)*)", by_hand()))
    assert len(named) > 20
    missing = [
        path + rest
        for path, rest in named
        if not any((folder / (path + rest)).is_file() for folder in (ROOT, package_tree.SOURCE))
        and not is_name_in(path.replace("/", "."), rest)
    ]
    assert not missing


def test_every_class_and_function_of_a_package_exists() -> None:
    """``kernels.named`` and ``bases.Basis.accumulate`` are exported by their packages; ``Tally.prepare`` and
    ``CuratorState.take`` are methods of classes somewhere in the package.
    """
    text = by_hand()
    exported = set(re.findall(rf"(?<![\w/.])({'|'.join(package_tree.packages())})((?:\.\w+)+)", text))
    exported = {(package, rest) for package, rest in exported if rest != ".py"}
    assert exported
    assert [package + rest for package, rest in exported if not is_name_in(package, rest)] == []
    methods = set(re.findall(r"(?<![\w/.])([A-Z][a-z]\w+)\.(\w+)", text))
    assert methods
    known = classes()
    assert [
        pair for pair in methods if not any(hasattr(each, pair[1]) for each in known.get(pair[0], []))
    ] == []


def is_name_in(module: str, rest: str) -> bool:
    """Whether ``hushsum.module`` is a module with this dotted name in it."""
    try:
        pkgutil.resolve_name(f"hushsum.{module}{rest}")
    except (ImportError, AttributeError):
        return False
    return True


def classes() -> dict[str, list[type]]:
    """All classes of the package by their names."""
    found: dict[str, list[type]] = {}
    for info in pkgutil.walk_packages(hushsum.__path__, "hushsum."):
        if info.name != "hushsum.__main__" and ".migrations" not in info.name:
            module = importlib.import_module(info.name)
            for name, each in inspect.getmembers(module, inspect.isclass):
                found.setdefault(name, []).append(each)
    return found
