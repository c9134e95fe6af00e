"""Errors are data wherever they are raised: read from the source, so that a new sentence cannot slip in.

Every error of Hushsum names its rule, what was given and what helps, each in its own field, and options of
the command line only there: elsewhere a parameter has its Python name, and each surface spells it.
"""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from hushsum.errors import KINDS
from tests.source_trees import source_trees

CLASSES = {each.__name__ for each in KINDS.values()}
PLAIN = {"bases/cosine_features.py", "bases/fourier_features.py", "bases/grid_weights.py", "records/sets.py"}
"""Files that still have errors of one sentence. Add none; take a file out when it has none left."""


@cache
def sites() -> list[tuple[str, ast.Call]]:
    return [
        (name, node)
        for name, tree in source_trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES
    ]


def field(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def literals(node: ast.expr | None) -> str:
    """The literal text of an expression, with a space for what is computed."""
    if node is None:
        return ""
    parts = []
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            parts.append(each.value)
    return " ".join(parts)


def test_no_error_is_one_sentence() -> None:
    assert len(sites()) > 700
    plain = {name for name, call in sites() if call.args}
    assert plain == PLAIN


def test_the_fields_are_apart() -> None:
    """What was given and what helps are not hidden in the rule."""
    rules = [(name, literals(field(call, "rule")), "FilePath" in ast.unparse(call)) for name, call in sites()]
    assert [each for each in rules if "; " in each[1]] == []
    # A path is not text, so it stands inside the rule.
    assert [each for each in rules if ", got " in each[1] and not each[2]] == []


def test_options_are_spelled_by_the_command_line_alone() -> None:
    """A whole command may be named anywhere; an option by itself is another surface's spelling."""
    texts = [
        (name, each.value)
        for name, call in sites()
        if not name.startswith("cli/")
        for each in ast.walk(call)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    options = [each for each in texts if re.search(r"(^|\s)--[a-z]", each[1]) and "hushsum " not in each[1]]
    assert options == []


def known_names() -> set[str]:
    names: set[str] = set()
    for tree in source_trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return names


@pytest.mark.parametrize("part", ["parameter", "Parameter", "Argument"])
def test_a_named_parameter_exists(part: str) -> None:
    given: list[tuple[str, ast.expr | None]] = []
    for name, call in sites():
        if part == "parameter":
            given.append((name, field(call, part)))
            continue
        inside = [each for each in ast.walk(call) if isinstance(each, ast.Call)]
        given += [(name, each.args[0]) for each in inside if ast.unparse(each.func) == part]
    known = known_names()
    named = [(name, each.value) for name, each in given if isinstance(each, ast.Constant)]
    assert [each for each in named if each[1] not in known] == []
