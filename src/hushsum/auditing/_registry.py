"""The registered cases of audits. A basis or kernel without registered cases fails a contract test, and
`hushsum.audit` refuses it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushsum.auditing._sensitivity import Adversary, Pool
from hushsum.auditing._smoke import Separated
from hushsum.errors import UsageError
from hushsum.kernels import Kernel
from hushsum.privacy import Promise
from hushsum.tables import Basis


@dataclass(frozen=True, slots=True)
class KernelCases:
    """How to attack a kernel: its adversary, and examples that between them run every loop."""

    adversary: Adversary
    examples: tuple[Kernel, ...]


@dataclass(frozen=True, slots=True)
class BasisCases:
    """How to attack a basis: the records for it, and examples that between them run every loop.

    ``of_kernel`` makes one for a kernel, where the basis counts several; None for a kernel that it does not.
    """

    pool: Adversary
    examples: tuple[Basis, ...]
    of_kernel: Callable[[Kernel], Basis | None] | None = None


@dataclass(frozen=True, slots=True)
class MechanismCase:
    """Two neighbours of a whole mechanism that adds Gaussian noise to a function; ``name`` is what people
    call it, ``make`` sets them up for any promise, and ``promise`` is the one that is audited by default.
    """

    name: str
    pair: str
    make: Callable[[Promise], Separated]
    promise: Promise
    thorough: bool = False

    def set_up(self) -> Separated:
        """The neighbours, under the default promise."""
        return self.make(self.promise)


_HIGHER: Final = (
    "hushsum.baselines._audit_cases",
    "hushsum.models.audit_cases",
    "hushsum.secret_functions._audit_cases",
    "hushsum.streams._audit_cases",
)
"""Packages above this layer register their own cases; imported by name, when they are needed."""

_KERNELS: dict[str, KernelCases] = {}
_BASES: dict[str, BasisCases] = {}
_MECHANISMS: list[MechanismCase] = []


def register_kernel(name: str, adversary: Adversary, *examples: Kernel) -> None:
    """Make known how a hashable kernel is attacked."""
    _KERNELS[name] = KernelCases(adversary, examples)


def register_basis(
    pool: Adversary, *examples: Basis, of_kernel: Callable[[Kernel], Basis | None] | None = None
) -> None:
    """Make known how a basis is attacked: with which records, and examples of it."""
    _BASES[examples[0].name] = BasisCases(pool, examples, of_kernel)


def register_mechanism(*cases: MechanismCase) -> None:
    """Make neighbours of whole mechanisms known."""
    _MECHANISMS.extend(cases)


def _load_higher() -> None:
    for name in _HIGHER:
        importlib.import_module(name)


def kernel_cases(name: str) -> KernelCases:
    """The cases of a kernel; refuses one that nothing is known about."""
    if name not in _KERNELS:
        raise UsageError(
            f"the kernel {name!r} has no audit: no table of counts releases it, or it was never registered",
            remedy=f"audit one of {', '.join(sorted(_KERNELS))}",
        )
    return _KERNELS[name]


def basis_cases(name: str) -> BasisCases:
    """The cases of a basis; refuses one that nothing is known about."""
    if name not in _BASES:
        _load_higher()
    if name not in _BASES:
        remedy = "register its worst pairs in hushsum.auditing"
        raise UsageError(f"the basis {name!r} has no audit", remedy=remedy)
    return _BASES[name]


def audited_kernels() -> list[str]:
    """The registered kernels, sorted."""
    return sorted(_KERNELS)


def audited_bases() -> list[str]:
    """The registered bases, sorted."""
    _load_higher()
    return sorted(_BASES)


def mechanism_cases(*, thorough: bool = True) -> list[MechanismCase]:
    """The registered neighbours of whole mechanisms, without the long ones unless ``thorough``."""
    _load_higher()
    return [case for case in _MECHANISMS if thorough or not case.thorough]


def pool_for(basis: Basis, rng: np.random.Generator) -> Pool:
    """Adversarial records for a basis."""
    return basis_cases(basis.name).pool(basis, rng)
