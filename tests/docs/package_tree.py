"""The tree in CONTRIBUTING.md, written from the layers of .importlinter and the packages' docstrings.

``python -m tests.docs.package_tree`` writes the table anew.
"""

from __future__ import annotations

import ast
import configparser
from typing import Final

from .pages import ROOT

PAGE: Final = ROOT / "CONTRIBUTING.md"
SOURCE: Final = ROOT / "src" / "hushsum"
BEGIN: Final = "<!-- packages: written by python -m tests.docs.package_tree -->\n"
END: Final = "<!-- end of packages -->\n"


def layers() -> list[list[str]]:
    """The packages and modules of each layer, the highest layer first."""
    rules = configparser.ConfigParser()
    rules.read(ROOT / ".importlinter", encoding="utf-8")
    lines = rules["importlinter:contract:layers"]["layers"].split("\n")
    return [[name.strip().removeprefix("hushsum.") for name in line.split("|")] for line in lines if line]


def packages() -> list[str]:
    """The packages that there are, subpackages not included."""
    return sorted(each.parent.name for each in SOURCE.glob("*/__init__.py"))


def purpose(name: str) -> str:
    """The first sentence of the docstring of a package or module."""
    file = SOURCE / name / "__init__.py"
    tree = ast.parse((file if file.exists() else SOURCE / f"{name}.py").read_text(encoding="utf-8"))
    text = ast.get_docstring(tree) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return first.replace("``", "`").replace(":func:", "").replace("|", "\\|")


def table() -> str:
    """One row per package, in the order of the layers."""
    rows = ["| layer | package | purpose |", "|---|---|---|"]
    for number, names in enumerate(layers(), start=1):
        for name in names:
            rows.append(f"| {number} | `{name}` | {purpose(name)} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """CONTRIBUTING.md with the table as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
