"""The algebra of kernels: products, powers, linear combinations, and kernels of some of the columns.

Every kernel has one form: a linear combination of products of plain kernels, each of some columns. So
products of sums are multiplied out, equal factors become powers, and equal components are added.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, cast

from hushsum._types import is_number
from hushsum.errors import UsageError, shown
from hushsum.files.container import canonical_json
from hushsum.kernels.base import Kernel
from hushsum.kernels.combination import MOST_COMPONENTS, CombinationKernel, Component, combination_of
from hushsum.kernels.parameters import MAX_DIM, MAX_POWER, positive_integer
from hushsum.kernels.product import MOST_FACTORS, Factor, ProductKernel, product_of
from hushsum.kernels.registry import kernel_as_json
from hushsum.kernels.scaled import ScaledKernel

_NEGLIGIBLE = 1e-12
"""The least weight of a component: squares of less would vanish beside others."""
Columns = int | str | Sequence[int] | Sequence[str]


def on_columns(kernel: Kernel, columns: Columns, *, of: int | Sequence[str]) -> Kernel:
    """A kernel of some columns of wider records: the others make no difference to it.

    Multiplied, such kernels compare records that mix numbers, categories and sets; added, they compare
    records by groups of columns.

    Parameters
    ----------
    kernel : Kernel
        Of as many columns as are given. A kernel of sets takes one column, whose values are lists of
        integers.
    columns : int, str, or a list of them
        Positions from 0 on, or names, in the order in which the kernel takes them.
    of : int or list of str
        All columns of a record: how many, or their names in their order. Names are for finding positions:
        give them as ``columns=`` to the release too, if frames are to be read by name.

    Raises
    ------
    UsageError
        if a column is not one of the record, or the kernel takes another number of them.

    Examples
    --------
    >>> import hushsum as hs
    >>> columns = ["age", "income", "town"]
    >>> near = hs.on_columns(hs.EuclideanKernel(dim=1, bandwidth=10.0), "age", of=columns)
    >>> same = hs.on_columns(hs.HammingKernel(dim=1), "town", of=columns)
    >>> (near * same).similarity([[30, 5.0, 2]], [[40, 9.0, 2], [30, 5.0, 1]]).round(3)
    array([[0.369, 0.   ]])
    """
    names = None if isinstance(of, int) else list(of)
    dim = of if isinstance(of, int) else len(of)
    listed: list[Any] = [columns] if isinstance(columns, int | str) else list(columns)
    places = []
    for each in listed:
        found = names.index(each) if names is not None and each in names else each
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < dim:
            raise UsageError(
                parameter="columns",
                rule=f"must be positions from 0 to {dim - 1}, or names of columns",
                got=shown(each),
                remedy="name columns that are in the list of all",
            )
        places.append(found)
    return placed(kernel, tuple(places), dim)


def placed(kernel: Kernel, columns: tuple[int, ...], dim: int) -> Kernel:
    """A kernel of the columns at these positions, of ``dim``."""
    _check_same_columns([kernel])
    dim = positive_integer("of", dim, at_most=MAX_DIM)
    wide = 1 if kernel.dim is None else kernel.dim
    if len(columns) != wide or len(set(columns)) != wide:
        raise UsageError(
            parameter="columns",
            rule=f"must be {wide} different columns for this kernel",
            got=len(columns),
            remedy="give a column for each of its own",
        )
    if not all(0 <= column < dim for column in columns):
        raise UsageError(parameter="columns", rule=f"must be positions from 0 to {dim - 1}", got="another")
    if isinstance(kernel, CombinationKernel):
        return combination(*((each.weight, placed(each.kernel, columns, dim)) for each in kernel.components))
    if isinstance(kernel, ProductKernel):
        inside = [
            Factor(each.kernel, tuple(columns[place] for place in each.columns)) for each in kernel.factors
        ]
        return _normal_product(dim, inside)
    return _normal_product(dim, [Factor(kernel, columns)])


def product(*kernels: Kernel) -> Kernel:
    """The product of kernels of the same columns; sums are multiplied out.

    >>> from hushsum.kernels import EuclideanKernel
    >>> product(EuclideanKernel(2, 1.0), EuclideanKernel(2, 1.0))
    EuclideanKernel(dim=2, bandwidth=1.0, power=2, projection='dense')
    """
    _check_same_columns(kernels)
    if any(isinstance(each, CombinationKernel) for each in kernels):
        sums = [_components(each) for each in kernels]
        _check_number(math.prod(map(len, sums)))
        return combination(
            *(
                (math.prod(weight for weight, _ in chosen), product(*(kernel for _, kernel in chosen)))
                for chosen in itertools.product(*sums)
            )
        )
    dim = kernels[0].dim
    factors = [factor for each in kernels for factor in _factors(each)]
    if dim is None:
        merged = _merged(factors)
        if len(merged) > 1:
            raise UsageError(
                parameter="kernel",
                rule="must be one kernel and its powers, where records are sets",
                got="two",
                remedy="put the sets in columns with on_columns",
            )
        return merged[0].kernel
    return _normal_product(dim, factors)


def combination(*components: tuple[float, Kernel]) -> Kernel:
    """Σ weight·kernel, of kernels of the same columns; those of weight 0 are left out.

    >>> from hushsum.kernels import EuclideanKernel
    >>> k = EuclideanKernel(dim=1, bandwidth=1.0)
    >>> combination((0.5, k), (0.5, k))
    EuclideanKernel(dim=1, bandwidth=1.0, power=1, projection='dense')
    """
    _check_same_columns([kernel for _, kernel in components])
    total: dict[Kernel, float] = {}
    for weight, kernel in components:
        for own, each in _components(kernel):
            total[each] = total.get(each, 0.0) + _weight(weight) * own
    # What is left where weights cancel up to rounding is 0.
    kept = [
        Component(_weight(weight), kernel) for kernel, weight in total.items() if abs(weight) >= _NEGLIGIBLE
    ]
    if not kept:
        raise UsageError(
            parameter="kernel", rule="must not be zero", got="weights that cancel", remedy="change a weight"
        )
    _check_number(len(kept))
    if len(kept) == 1 and kept[0].weight == 1.0:
        return kept[0].kernel
    return combination_of(kept)


def power_of(kernel: Kernel, power: int) -> Kernel:
    """A kernel to a positive integer power."""
    number = positive_integer("power", power, at_most=MAX_POWER)
    if number == 1:
        return kernel
    if isinstance(kernel, CombinationKernel):
        half = power_of(product(kernel, kernel), number // 2)
        return product(half, kernel) if number % 2 else half
    if isinstance(kernel, ProductKernel):
        return _normal_product(kernel.dim, [each for each in kernel.factors for _ in range(number)])
    return product(*[kernel] * number)


def _normal_product(dim: int, factors: Sequence[Factor]) -> Kernel:
    merged = _merged(factors)
    if len(merged) > MOST_FACTORS:
        raise UsageError(
            parameter="kernel", rule=f"must have at most {MOST_FACTORS} factors", got=len(merged)
        )
    alone = merged[0]
    whole = len(alone.columns) == dim and alone.columns == tuple(range(dim))
    if len(merged) == 1 and whole and alone.kernel.dim is not None:
        return alone.kernel
    return product_of(dim, merged)


def _merged(factors: Sequence[Factor]) -> list[Factor]:
    """Equal kernels of the same columns, up to a power, as one of the sum of the powers; in one order,
    whatever the order in which they were multiplied.
    """
    found: list[Factor] = []
    powers: dict[tuple[Kernel, tuple[int, ...]], int] = {}
    places: dict[tuple[Kernel, tuple[int, ...]], int] = {}
    for each in factors:
        power = each.kernel.parameters().get("power")
        if type(power) is not int:
            found.append(each)
            continue
        key = (_powered(each.kernel, 1), each.columns)
        if key not in powers:
            places[key], powers[key] = len(found), 0
            found.append(each)
        powers[key] += power
    for key, place in places.items():
        found[place] = Factor(_powered(key[0], powers[key]), key[1])
    return sorted(found, key=lambda each: (each.columns, canonical_json(kernel_as_json(each.kernel))))


def _powered(kernel: Kernel, power: int) -> Kernel:
    changed: Kernel = dataclasses.replace(cast("Any", kernel), power=power)
    return changed


def _factors(kernel: Kernel) -> tuple[Factor, ...]:
    if isinstance(kernel, ProductKernel):
        return kernel.factors
    return (Factor(kernel, tuple(range(kernel.dim or 1))),)


def _components(kernel: Kernel) -> tuple[tuple[float, Kernel], ...]:
    if isinstance(kernel, CombinationKernel):
        return tuple((each.weight, each.kernel) for each in kernel.components)
    return ((1.0, kernel),)


def _weight(value: float) -> float:
    try:
        number = float(value) if is_number(value) else math.nan
    except OverflowError:
        number = math.nan
    if not math.isfinite(number) or abs(number) > 1e12 or 0.0 < abs(number) < _NEGLIGIBLE:
        raise UsageError(
            parameter="weight",
            rule=f"must be 0, or a finite number from {_NEGLIGIBLE:g} to 1e12 or its negative",
            got=shown(value),
            remedy="multiply kernels with numbers, or with kernels",
        )
    return number


def _check_number(number: int) -> None:
    if number > MOST_COMPONENTS:
        raise UsageError(
            parameter="kernel",
            rule=f"must be a combination of at most {MOST_COMPONENTS} products",
            got=number,
            remedy="fit fewer with hushsum.fit_kernel",
        )


def _check_same_columns(kernels: Sequence[Kernel]) -> None:
    for each in kernels:
        if not isinstance(each, Kernel):
            raise UsageError(parameter="kernel", rule="must be a kernel", got=type(each).__name__)
        if isinstance(each, ScaledKernel):
            raise UsageError(
                parameter="kernel",
                rule="must not have units of its own, to be multiplied, added or placed",
                got="a scaled kernel",
                remedy="scale the result instead",
            )
    if len({each.dim for each in kernels}) > 1:
        listed = ", ".join("sets" if each.dim is None else str(each.dim) for each in kernels)
        raise UsageError(
            parameter="kernel",
            rule="must be kernels of the same number of columns, to be multiplied or added",
            got=listed,
            remedy="place each with on_columns(kernel, columns, of=...)",
        )
