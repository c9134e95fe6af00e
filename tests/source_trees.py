"""The source of the library as syntax trees, parsed once for all tests that read it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import hushsum

SOURCE = Path(hushsum.__file__).parent


@cache
def source_trees() -> dict[str, ast.Module]:
    """The tree of every module, by its path under the package."""
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
    }
