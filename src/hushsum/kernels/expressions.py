"""Kernels written as text: ``0.7 * euclidean(age, income, bandwidth=10) * hamming(town) + 0.3 *
hamming(town)``.

A kernel's name is followed, in brackets, by its columns (names, or positions from 0 on; all columns by
default) and its parameters. ``*``, ``+``, ``-``, ``**`` and brackets have their usual meaning. A name with a
hyphen is written with an underscore, and a column whose name is not a word in quotes.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from hushsum.errors import Parameter, UsageError, shown
from hushsum.kernels.base import Kernel
from hushsum.kernels.combination import CombinationKernel
from hushsum.kernels.composition import combination, on_columns, power_of, product
from hushsum.kernels.product import ProductKernel
from hushsum.kernels.registry import kernel_names, named, parameter_names

LONGEST = 2000
"""Characters of an expression."""

MOST_COLUMNS = 1 << 16
"""Columns of records that a text may name by position."""
_EXAMPLE = "'euclidean(age, bandwidth=10) * hamming(town)'"


@dataclass(frozen=True, slots=True)
class KernelExpression:
    """A kernel before the columns of the records are known.

    >>> text = KernelExpression("euclidean(age, bandwidth=10) * hamming(town)")
    >>> text.build(columns=["town", "age"]).similarity([[3, 30.0]], [[3, 40.0]]).round(3)
    array([[0.369]])
    """

    text: str

    def __post_init__(self) -> None:
        # Checks every name and operation.
        self._atoms(self._tree())

    @property
    def takes_sets(self) -> bool:
        """Whether records are sets, and not rows of columns."""
        atoms = self._atoms(self._tree())
        return all("dim" not in parameter_names(name) and not columns for name, columns, _ in atoms)

    def example_columns(self, dim: int | None = None) -> list[str] | None:
        """Names for all columns of records that suit the text, where nothing else is known: those that it
        mentions, in order, and others. None where records are sets.
        """
        if self.takes_sets:
            return None
        listed = [each for _, columns, _ in self._atoms(self._tree()) for each in columns]
        names = list(dict.fromkeys(each for each in listed if isinstance(each, str)))
        places = [each for each in listed if isinstance(each, int)]
        number = max(dim or 1, len(names), *(each + 1 for each in places), 1)
        return names + [f"another column {place}" for place in range(number - len(names))]

    def build(
        self,
        dim: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        defaults: Mapping[str, object] | None = None,
    ) -> Kernel:
        """The kernel for records of ``dim`` columns, or with columns of these names.

        ``defaults`` are parameters of the kernels in it that take them and do not state them.

        Raises
        ------
        UsageError
            if a parameter is missing or wrong, or a column is not there.
        """
        tree = self._tree()
        given = {name: value for name, value in (defaults or {}).items() if value is not None}
        taken = {name for kernel, _, _ in self._atoms(tree) for name in parameter_names(kernel)}
        for name in given:
            if name not in taken:
                raise UsageError(
                    rule=("no kernel of the expression has ", Parameter(name)), remedy="leave it out"
                )
        of: int | Sequence[str] | None = (
            dim if columns is None or len(columns) != (dim or len(columns)) else columns
        )
        try:
            return self._kernel(tree, of, given)
        except RecursionError:
            _refuse("too deep")

    def _tree(self) -> ast.expr:
        if not isinstance(self.text, str) or len(self.text) > LONGEST:
            _refuse(f"one longer than {LONGEST} characters")
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            _refuse(shown(self.text))

    def _atoms(self, tree: ast.expr) -> list[tuple[str, list[int | str], dict[str, Any]]]:
        found = []
        try:
            for node in ast.walk(tree):
                if isinstance(node, ast.Call):
                    found.append(_atom(node))
            self._check(tree, found)
        except RecursionError:
            _refuse("too deep")
        if not found:
            _refuse(shown(self.text))
        return found

    def _check(self, node: ast.expr, found: list[Any]) -> None:
        """Refuse what is not an operation on kernels, and add the kernels that have no brackets."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Pow):
            self._check(node.left, found)
            self._check(node.right, found)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            self._check(node.operand, found)
        elif isinstance(node, ast.Name):
            found.append(_atom(node))
        elif not (isinstance(node, ast.Call) or _is_number(node)):
            _refuse(shown(self.text))

    def _kernel(self, node: ast.expr, of: int | Sequence[str] | None, given: Mapping[str, object]) -> Kernel:
        value = self._value(node, of, given)
        if not isinstance(value, Kernel):
            _refuse("a number")
        return value

    def _value(
        self, node: ast.expr, of: int | Sequence[str] | None, given: Mapping[str, object]
    ) -> Kernel | float:
        if isinstance(node, ast.Constant):
            try:
                return float(node.value)  # type: ignore[arg-type]
            except OverflowError:
                _refuse("a number beyond all")
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, of, given)
            return value if isinstance(node.op, ast.UAdd) else -1.0 * value
        if isinstance(node, ast.BinOp):
            left = self._value(node.left, of, given)
            if isinstance(node.op, ast.Pow):
                if not isinstance(left, Kernel) or not isinstance(node.right, ast.Constant):
                    _refuse("a power that is not an integer")
                return power_of(left, cast("int", node.right.value))
            return _joined(node.op, left, self._value(node.right, of, given))
        name, columns, parameters = _atom(node)
        return _built(name, columns, {**given, **parameters}, parameters, of)


def _joined(op: ast.operator, left: Kernel | float, right: Kernel | float) -> Kernel | float:
    if isinstance(op, ast.Mult):
        if isinstance(left, Kernel):
            return product(left, right) if isinstance(right, Kernel) else combination((right, left))
        return combination((left, right)) if isinstance(right, Kernel) else left * right
    if not (isinstance(left, Kernel) and isinstance(right, Kernel)):
        _refuse("a number that is added to a kernel")
    return combination((1.0, left), (1.0 if isinstance(op, ast.Add) else -1.0, right))


def _built(
    name: str,
    columns: list[int | str],
    parameters: Mapping[str, Any],
    stated: Mapping[str, Any],
    of: int | Sequence[str] | None,
) -> Kernel:
    taken = parameter_names(name)
    # What is stated must be a parameter of this kernel; a default only where it is one.
    values = {key: value for key, value in parameters.items() if key in taken or key in stated}
    if not columns:
        whole = of if of is None or isinstance(of, int) else len(of)
        return named(name, dim=whole if "dim" in taken else None, **values)
    if of is None:
        raise UsageError(
            parameter="kernel",
            rule="must not name columns where the records' columns are not known",
            remedy="declare the columns",
        )
    kernel = named(name, dim=len(columns) if "dim" in taken else None, **values)
    return on_columns(kernel, cast("Any", columns), of=of)


def _atom(node: ast.expr) -> tuple[str, list[int | str], dict[str, Any]]:
    """A kernel's name, columns and parameters."""
    if isinstance(node, ast.Name):
        return _kernel_name(node.id), [], {}
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        _refuse("something else than kernels and numbers")
    columns: list[int | str] = []
    for each in node.args:
        if isinstance(each, ast.Name):
            columns.append(each.id)
        elif isinstance(each, ast.Constant) and type(each.value) in (int, str):
            if type(each.value) is int and each.value >= MOST_COLUMNS:
                _refuse(f"a position beyond {MOST_COLUMNS} columns")
            columns.append(cast("int | str", each.value))
        else:
            _refuse("columns that are neither names nor positions")
    parameters: dict[str, Any] = {}
    for keyword in node.keywords:
        value = keyword.value
        if keyword.arg is None or keyword.arg == "dim":
            _refuse("a parameter that is not one of a kernel's text")
        if keyword.arg in parameters:
            _refuse(f"two values for {keyword.arg}")
        if isinstance(value, ast.Name):
            parameters[keyword.arg] = value.id
        elif isinstance(value, ast.Constant) and type(value.value) in (int, float, str):
            parameters[keyword.arg] = value.value
        else:
            _refuse(f"a {keyword.arg} that is neither a number nor a word")
    return _kernel_name(node.func.id), columns, parameters


def _kernel_name(text: str) -> str:
    name = text.replace("_", "-")
    if name not in kernel_names():
        raise UsageError(
            parameter="kernel",
            rule=f"must be made of {', '.join(kernel_names())}",
            got=shown(text),
            remedy="choose among those",
        )
    return name


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _refuse(got: str) -> NoReturn:
    raise UsageError(
        parameter="kernel",
        rule="must be the name of a kernel, or kernels joined by *, + and -",
        got=got,
        remedy=f"write such as {_EXAMPLE}",
    )


def as_expression(kernel: Kernel) -> str:
    """A kernel as text, from which `KernelExpression` makes the same one.

    >>> from hushsum.kernels import EuclideanKernel, HammingKernel, on_columns
    >>> near, same = EuclideanKernel(2, 1.0), HammingKernel(1)
    >>> as_expression(on_columns(near, [0, 1], of=3) * on_columns(same, 2, of=3) - 0.5 * HammingKernel(3))
    '1.0 * euclidean(0, 1, bandwidth=1.0) * hamming(2) - 0.5 * hamming'
    """
    if isinstance(kernel, CombinationKernel):
        parts = [
            f"{'-' if each.weight < 0 else '+'} {abs(each.weight)!r} * {as_expression(each.kernel)}"
            for each in kernel.components
        ]
        text = " ".join(parts)
        return text[2:] if text.startswith("+") else f"-{text[2:]}"
    if isinstance(kernel, ProductKernel):
        return " * ".join(_written(each.kernel, each.columns) for each in kernel.factors)
    return _written(kernel, ())


def _written(kernel: Kernel, columns: Sequence[int]) -> str:
    parameters = []
    values = kernel.parameters()
    for field in dataclasses.fields(cast("Any", kernel)):
        value = values[field.name]
        if field.name != "dim" and value != field.default:
            parameters.append(f"{field.name}={value if isinstance(value, str) else repr(value)}")
    inside = ", ".join([*map(str, columns), *parameters])
    name = kernel.name.replace("-", "_")
    return f"{name}({inside})" if inside else name
