"""The registered kernels: by name, with parameters, as JSON, and by the roles that methods require."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

from hushsum.errors import FileRefused, Parameter, UsageError, shown
from hushsum.files import canonical_json

from ._base import (
    ColumnKernel,
    GaussianProfileKernel,
    HashableCombination,
    HashableKernel,
    InnerProductKernel,
    Kernel,
    ProfileKernel,
    SpectralKernel,
)

K = TypeVar("K", bound=type[Kernel])
C = TypeVar("C", bound=Kernel)
_KERNELS: dict[str, type[Kernel]] = {}
_COMPOSED: dict[str, Callable[[Mapping[str, Any]], Kernel]] = {}


def register(kernel: K) -> K:
    """Make a kernel known by its name, for files, the command line and the service."""
    _KERNELS[kernel.name] = kernel
    return kernel


def register_composed(name: str, make: Callable[[Mapping[str, Any]], Kernel]) -> None:
    """Make known how a kernel that is made of others is read from a file's header. ``make`` raises
    ``ValueError`` for parameters that no kernel has.
    """
    _COMPOSED[name] = make


@cache
def composed_class(
    kind: type[C], roles: tuple[type[C], ...], *, signed: bool, positive_definite: bool
) -> type[C]:
    """The class of a kernel made of others, with the roles and the properties that they give it."""
    members = {
        "__slots__": (),
        "__doc__": kind.__doc__,
        "signed": signed,
        "positive_definite": positive_definite,
    }
    return type(kind.__name__, roles or (kind,), members)


def composed_names() -> list[str]:
    """The names of kernels that are made of others, sorted."""
    return sorted(_COMPOSED)


def kernel_names() -> list[str]:
    """The names of the registered kernels that are made from parameters, sorted."""
    return sorted(_KERNELS)


def parameter_names(name: str) -> tuple[str, ...]:
    """What the kernel of that name is made from; of an expression, ``dim`` unless its records are sets.

    >>> parameter_names("hamming"), parameter_names("hamming * angular")
    (('dim', 'power'), ('dim',))
    """
    if is_expression(name):
        from ._expressions import KernelExpression

        return () if KernelExpression(name).takes_sets else ("dim",)
    kernel: Any = _kernel_class(name)
    return tuple(field.name for field in dataclasses.fields(kernel))


def is_signed(name: str) -> bool:
    """Whether the kernel of that name may be negative, so that its sums are not counts of records.

    >>> is_signed("gaussian"), is_signed("dot-product")
    (False, True)
    """
    return _kernel_class(name).signed


def is_expression(name: object) -> bool:
    """Whether a text is made of more than the name of a kernel.

    >>> is_expression("dot-product"), is_expression("hamming(0)")
    (False, True)
    """
    return isinstance(name, str) and name not in _KERNELS and not name.replace("-", "").isalnum()


def named(
    name: str,
    *,
    dim: int | None = None,
    bandwidth: float | None = None,
    columns: Sequence[str] | None = None,
    **parameters: object,
) -> Kernel:
    """The kernel of that name. A parameter that is None is left at the kernel's default.

    Parameters
    ----------
    name : str
        One of :func:`kernel_names`, or several joined by ``*``, ``+`` and ``-``, each with its columns and
        parameters in brackets. What is given beside the text is for those that do not state it.
    columns : list of str, optional
        The names of the columns, for expressions that use them.
    dim : int, optional
        The number of columns; for kernels of sets it is not used.
    bandwidth : float, optional
        The scale, in the units of the data. Needed by the kernels that have one.
    **parameters
        Whatever else the kernel has, such as ``power``.

    Raises
    ------
    UsageError
        if the name is unknown, a parameter is missing that the kernel needs, or one is given that it does
        not have.

    Examples
    --------
    >>> named("gaussian", dim=2, bandwidth=0.5)
    GaussianKernel(dim=2, bandwidth=0.5, power=1)
    """
    if is_expression(name):
        from ._expressions import KernelExpression

        defaults = {"bandwidth": bandwidth, **parameters}
        return KernelExpression(name).build(dim, columns=columns, defaults=defaults)
    kind: Any = _kernel_class(name)
    taken = parameter_names(name)
    given = {"bandwidth": bandwidth, **parameters}
    arguments = {parameter: value for parameter, value in given.items() if value is not None}
    for parameter in arguments:
        if parameter not in taken:
            raise UsageError((f"the {name} kernel has no ", Parameter(parameter)))
    remedies = {"dim": "give the number of columns", "bandwidth": "choose it without looking at the data"}
    for needed, value in (("dim", dim), ("bandwidth", bandwidth)):
        if needed in taken and value is None:
            raise UsageError(needed, f"must be given for the {name} kernel", remedy=remedies[needed])
    if "dim" in taken:
        arguments["dim"] = dim
    kernel: Kernel = kind(**arguments)
    return kernel


def example_columns(name: str, dim: int | None) -> list[str] | None:
    """Names of columns for a kernel in an expression, where only their number matters, as for a plan; None
    for a kernel that names no columns.
    """
    if not is_expression(name):
        return None
    from ._expressions import KernelExpression

    return KernelExpression(name).example_columns(dim)


def kernel_from_json(data: dict[str, Any]) -> Kernel:
    """The kernel that a file's header describes."""
    name = data.get("name")
    if name in _COMPOSED:
        kernel = _COMPOSED[name](data["parameters"])
    elif name in _KERNELS:
        kernel = cast("Any", _KERNELS[name])(**data["parameters"])
    else:
        raise FileRefused(
            f"the file uses the kernel {name!r}, which this version of Hushsum does not have",
            remedy="install a later one",
        )
    if kernel.name != name or canonical_json(kernel.parameters()) != canonical_json(data["parameters"]):
        raise ValueError("a kernel has one description")
    return kernel


def kernel_as_json(kernel: Kernel) -> dict[str, Any]:
    """A kernel for a file's header."""
    return {"name": kernel.name, "parameters": kernel.parameters()}


def _kernel_class(name: str) -> type[Kernel]:
    if name not in _KERNELS:
        raise UsageError("kernel", f"must be one of {', '.join(kernel_names())}", got=shown(name))
    return _KERNELS[name]


def _one_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}" if names else "none of those here"


@dataclass(frozen=True, slots=True)
class Role:
    """What a method needs of a kernel: ``test`` says whether a kernel has it, ``what`` says it in words."""

    what: str
    test: Callable[[Kernel], bool]

    def check(self, kernel: Kernel, asker: str) -> None:
        """Refuse a kernel that does not have the role.

        Raises
        ------
        UsageError
            with the kernels that have it.
        """
        if not self.test(kernel):
            rule = f"must be one that {self.what}, for {asker}"
            remedy = f"use {_one_of(self.kernels(kernel.dim or 1))}, or another method"
            raise UsageError("kernel", rule, got=f"the {kernel.name} kernel", remedy=remedy)

    def kernels(self, dim: int = 1) -> list[str]:
        """The names of the registered kernels that have the role, for this number of columns."""
        found = []
        for name in kernel_names():
            bandwidth = 1.0 if "bandwidth" in parameter_names(name) else None
            if self.test(named(name, dim=dim, bandwidth=bandwidth)):
                found.append(name)
        return found


HASHABLE = Role(
    "is the collision probability of hash functions", lambda kernel: isinstance(kernel, HashableKernel)
)
HASH_ROWS = Role(
    "is a collision probability of hash functions, or a linear combination of such kernels",
    lambda kernel: isinstance(kernel, HashableKernel | HashableCombination),
)
SPECTRAL = Role("has a known spectral measure", lambda kernel: isinstance(kernel, SpectralKernel))
COLUMNS = Role("compares columns of numbers", lambda kernel: isinstance(kernel, ColumnKernel))
POSITIVE_DEFINITE = Role(
    "compares columns of numbers and is positive definite, as sums with positive weights are",
    lambda kernel: isinstance(kernel, ColumnKernel) and kernel.positive_definite,
)
PROFILES = Role("is a sum of products over columns", lambda kernel: isinstance(kernel, ProfileKernel))
SMOOTH_PROFILES = Role(
    "is a sum of smooth products over columns",
    lambda kernel: isinstance(kernel, ProfileKernel) and kernel.smooth,
)
PRODUCT = Role(
    "is a product over its columns",
    lambda kernel: isinstance(kernel, ProfileKernel) and kernel.column_profile() is not None,
)
INNER_PRODUCT = Role("is a power of the inner product", lambda kernel: isinstance(kernel, InnerProductKernel))
GAUSSIAN = Role("has the Gaussian shape", lambda kernel: isinstance(kernel, GaussianProfileKernel))
