"""Checks of parameters of kernels and counting, and the parameters in words."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from hushsum._types import is_number
from hushsum.errors import Parameter, UsageError, shown

if TYPE_CHECKING:
    from ._base import Kernel


def positive_integer(name: str, value: int, *, at_most: int) -> int:
    """An integer from 1 to ``at_most``."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= at_most:
        raise UsageError(name, f"must be an integer from 1 to {at_most}", got=shown(value))
    return number


def thread_count(threads: int | None) -> int:
    """The requested number, or all cores this process may use; results do not depend on it."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return positive_integer("threads", threads, at_most=1024)


def one_of(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the choices."""
    listed = list(choices)
    if value not in listed:
        raise UsageError(name, f"must be one of {', '.join(listed)}", got=shown(value))


def as_float(value: object) -> float:
    """A given number; NaN if it is none, or beyond all floats."""
    try:
        return float(value) if is_number(value) else math.nan
    except OverflowError:
        return math.nan


def positive_number(
    name: str, value: float, *, remedy: str = "give the scale of the data in its units"
) -> float:
    """A finite number above 0."""
    number = as_float(value)
    if not 0.0 < number < math.inf:
        raise UsageError(name, "must be a finite number above 0", got=shown(value), remedy=remedy)
    return number


def _in_single_precision(name: str, value: float, *, digits: int, remedy: str) -> float:
    """A positive number from 1e-digits to 1e+digits, so that single-precision records suit it."""
    number = positive_number(name, value, remedy=remedy)
    if not float(f"1e-{digits}") <= number <= float(f"1e{digits}"):
        rule = f"must be from 1e-{digits} to 1e{digits}"
        raise UsageError(name, rule, got=f"{number:g}", remedy="rescale the columns")
    return number


def check_parameters(kernel: Kernel) -> None:
    """Check and normalise the parameters that most kernels have, where this one has them: ``dim``,
    ``bandwidth``, ``power`` and ``radius``. For ``__post_init__`` of a frozen dataclass.
    """
    for name, value in kernel.parameters().items():
        if name in _RULES:
            object.__setattr__(kernel, name, _RULES[name](value))


def integer_seed(value: object) -> int:
    """A public seed: any integer."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise UsageError("seed", "must be an integer", got=type(value).__name__, remedy="give one such as 7")
    return operator.index(value)


def kernel_in_words(kernel: Kernel) -> str:
    """A kernel and its parameters on one line; a composed kernel is written as an expression.

    >>> from hushsum.kernels import HammingKernel
    >>> kernel_in_words(HammingKernel(dim=4))
    'hamming (dim 4, power 1)'
    """
    from ._expressions import CombinationKernel, ProductKernel, ScaledKernel, as_expression

    if isinstance(kernel, ScaledKernel):
        widths = " × ".join(f"{each:.6g}" for each in kernel.column_bandwidths()[:_MOST_BANDWIDTHS])
        more = " × …" if kernel.dim > _MOST_BANDWIDTHS else ""
        return f"{kernel_in_words(kernel.kernel)}, of the declared ranges: {widths}{more}"
    if isinstance(kernel, ProductKernel | CombinationKernel):
        return as_expression(kernel)
    shown = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in kernel.parameters().items()
    )
    return f"{kernel.name} ({shown})"


def counts_records(kernel: Kernel) -> bool:
    """Whether a kernel sum is about a number of records: those near a query count 1, others 0 or between."""
    from ._expressions import CombinationKernel

    return not kernel.signed and not any(
        isinstance(each, CombinationKernel) for each in (kernel, *kernel.parts())
    )


def answer_in_words(kernel: Kernel, of: str) -> str:
    """What an answer of a released function is, as pictures label it: "records near here"."""
    if not counts_records(kernel):
        return "sum of similarities" if of == "sum" else "mean similarity"
    return "records near here" if of == "sum" else "share of records near here"


def records_in_words(number: float) -> str:
    """An error in records, with two digits.

    >>> records_in_words(32.4), records_in_words(12_345.0), records_in_words(0.123)
    ('± 32 records', '± 12,000 records', '± 0.12 records')
    """
    rounded = float(f"{number:.2g}")
    return f"± {rounded:,.0f} records" if rounded >= 10 else f"± {rounded:g} records"


def error_in_words(kernel: Kernel, error: float, records: float) -> str:
    """The mean absolute error of mean kernel values for people: in records, and as a share of all.

    >>> from hushsum.kernels import GaussianKernel
    >>> error_in_words(GaussianKernel(dim=1, bandwidth=1.0), 0.0013, 25_000)
    '± 32 records near a typical point, 0.13 % of all'
    """
    amount = amount_in_words(kernel, error, records)
    if not counts_records(kernel):
        return f"{amount} of the mean similarity at a typical point"
    return f"{amount} near a typical point, {100 * error:.2g} % of all"


def amount_in_words(kernel: Kernel, error: float, records: float) -> str:
    """An error in records, or in similarity for kernels that do not count records."""
    return records_in_words(error * records) if counts_records(kernel) else f"± {error:.2g}"


MAX_DIM = 1 << 20
_MOST_BANDWIDTHS = 4
MAX_POWER = 256

_RULES: dict[str, Callable[[Any], float]] = {
    "dim": partial(positive_integer, "dim", at_most=MAX_DIM),
    "bandwidth": partial(
        _in_single_precision, "bandwidth", digits=30, remedy="give the scale of the data in its units"
    ),
    "power": partial(positive_integer, "power", at_most=MAX_POWER),
    "radius": partial(
        _in_single_precision, "radius", digits=15, remedy="give the length that no record exceeds"
    ),
    "query_radius": partial(
        _in_single_precision, "query_radius", digits=15, remedy="give the length that no query exceeds"
    ),
}


def check_columns(columns: tuple[str, ...] | None, dim: int) -> None:
    """Refuse names of columns that are not ``dim`` different ones, or one for a column of lists."""
    if columns is None:
        return
    if not isinstance(columns, tuple) or not all(isinstance(name, str) and name for name in columns):
        raise UsageError("columns", "must be names", got="something else", remedy="give a list of strings")
    if len(set(columns)) != len(columns):
        raise UsageError("columns", "must name each column once")
    # One name may stand for a column of lists, such as embeddings.
    if len(columns) not in (1, dim):
        raise UsageError("columns", f"must be {dim} names, one for each", got=len(columns))


def check_cap(units: object, max_per_unit: int | None, *, parameter: str = "units") -> None:
    """Refuse ids of persons without a cap, and a cap without ids."""
    if (units is None) != (max_per_unit is None):
        raise UsageError(parameter, ("and ", Parameter("max_per_unit"), " need each other"), got="one")
