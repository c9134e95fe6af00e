"""Concepts with one definition keep it: read from the source, so that a second one is noticed.

Which kernels a method takes follows from roles, never from a name or from whether an attribute exists. That
a budget is debited in one place is in ``tests/unit/privacy/test_spending.py``, the length of files in
``tests/unit/test_public_names.py``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache

import pytest

from hushsum import kernels
from hushsum.bases import registry as bases
from hushsum.kernels import kernel_names
from hushsum.methods import all_methods
from tests.source_trees import source_trees

NAMES = {*kernel_names(), *(method.name for method in all_methods()), *bases._BASES}

CLASSES = {
    name
    for name, each in vars(kernels).items()
    if isinstance(each, type) and kernels.Kernel in each.__mro__ and is_dataclass(each)
}
"""Kernels that can be made, as against roles."""

KNOWN = {
    # Other concepts with the same word: families of hash functions and of polynomials, a distribution, parts
    # of a file.
    ("kernels/projections.py", "self.family == 'manhattan'"),
    ("bases/box_polynomials.py", "self.basis.polynomials == MONOMIALS"),
    ("models/classifier.py", "name != _PART"),
    ("served/output_perturbation.py", "mechanism == 'gaussian'"),
    ("models/gaussian_process.py", "'moments' in bundle.parts"),
    # A model's own parameter, whose choices it declares.
    ("models/sampler.py", "self.method == 'grid'"),
}


def constants(tree: ast.Module) -> dict[str, str]:
    """Names of texts in a module, such as ``GRID = "grid"``; other modules may import them."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and isinstance(node.value.value, str):
                found[target.id] = node.value.value
    return found


@cache
def shared_constants() -> dict[str, str]:
    named = [each for tree in source_trees().values() for each in constants(tree).items()]
    return {name: text for name, text in named if text in NAMES}


def compared_texts(node: ast.Compare, named: dict[str, str]) -> Iterator[str]:
    for side in (node.left, *node.comparators):
        elements = side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
        for each in elements:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value
            elif isinstance(each, ast.Name) and each.id in named:
                yield named[each.id]


def branches(tree: ast.Module) -> Iterator[str]:
    """Comparisons with the name of a kernel, method or basis; and patterns of ``match`` with one."""
    named = {**shared_constants(), **constants(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
            of_objects = any(
                side.rpartition(".")[0].endswith(("kernel", "method", "basis")) and side.endswith(".name")
                for side in sides
            )
            if of_objects or NAMES.intersection(compared_texts(node, named)):
                yield ast.unparse(node)
        elif isinstance(node, ast.MatchValue) and ast.unparse(node.value).strip("'") in NAMES:
            yield f"case {ast.unparse(node)}"


def attribute_probes(tree: ast.Module) -> Iterator[str]:
    """``getattr`` and ``hasattr`` of a kernel, which ask for a role in another way than by its type.

    A kernel is recognised by its variable's name, or by an attribute that only kernels have.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            of, *names = map(ast.unparse, node.args)
            is_kernel = of.rpartition(".")[2].endswith("kernel") or names[:1] == [repr("bandwidth")]
            if node.func.id in ("getattr", "hasattr") and is_kernel:
                yield ast.unparse(node)


def class_branches(tree: ast.Module) -> Iterator[str]:
    """``isinstance`` with the class of one kernel instead of a role; an ``assert`` decides nothing."""
    asserted = {
        id(each) for node in ast.walk(tree) if isinstance(node, ast.Assert) for each in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and id(node) not in asserted and len(node.args) == 2:
            tested = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
            if ast.unparse(node.func) in ("isinstance", "issubclass") and tested & CLASSES:
                yield ast.unparse(node)


def test_nothing_depends_on_the_name_of_a_kernel_method_or_basis() -> None:
    found = {(path, branch) for path, tree in source_trees().items() for branch in branches(tree)}
    assert found - KNOWN == set()


def test_nothing_outside_the_kernels_depends_on_the_class_of_one() -> None:
    outside = {path: tree for path, tree in source_trees().items() if not path.startswith("kernels/")}
    assert [(path, each) for path, tree in outside.items() for each in class_branches(tree)] == []


def test_a_kernel_is_not_probed_for_attributes() -> None:
    assert [(path, probe) for path, tree in source_trees().items() for probe in attribute_probes(tree)] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("if kernel.name == given: pass", ["kernel.name == given"]),
        ("x = self.method in ('race', 'other')", ["self.method in ('race', 'other')"]),
        ("GRID = 'grid'\ny = each == GRID", ["each == GRID"]),
        ("match kernel:\n    case 'gaussian':\n        pass", ["case 'gaussian'"]),
        ("x = isinstance(kernel, ColumnKernel) and method == 'auto'", []),
    ],
)
def test_the_search_finds_branches(source: str, found: list[str]) -> None:
    assert list(branches(ast.parse(source))) == found


def test_the_search_finds_classes() -> None:
    tree = ast.parse(
        "x = isinstance(each, GaussianKernel | int); assert isinstance(each, GaussianKernel); "
        "y = isinstance(each, ColumnKernel)"
    )
    assert list(class_branches(tree)) == ["isinstance(each, GaussianKernel | int)"]


def test_the_search_finds_probes() -> None:
    probes = [
        "getattr(self.kernel, 'dim', None)",
        "hasattr(kernel, 'width')",
        "getattr(found, 'bandwidth', 1)",
    ]
    tree = ast.parse("; ".join([*probes, "getattr(model, 'kernel')"]))
    assert list(attribute_probes(tree)) == probes
