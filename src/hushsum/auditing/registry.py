"""What there is to audit. A basis, kernel or sampler that does not register its worst pairs fails a contract
test, and `hushsum.audit` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.adversaries import Adversary, Pool, code_records, dense_records, set_records
from hushsum.auditing.choice import audit_choice
from hushsum.auditing.noise import NoiseAudit, audit_gaussian, audit_laplace
from hushsum.bases.base import Basis
from hushsum.bases.hash_rows import HashRows
from hushsum.errors import UsageError
from hushsum.kernels import (
    AngularKernel,
    EuclideanKernel,
    HammingKernel,
    JaccardKernel,
    Kernel,
    ManhattanKernel,
)
from hushsum.privacy.calibration import GAUSSIAN, LAPLACE, IntegerNoise, laplace_noise
from hushsum.privacy.claim import exact
from hushsum.privacy.noise import NoiseSource
from hushsum.privacy.noise.choice import (
    exponential_choice,
    exponential_law,
    permute_and_flip,
    permute_and_flip_law,
)


@dataclass(frozen=True, slots=True)
class KernelCases:
    """How to attack a kernel: its adversary, and examples that between them run every loop."""

    adversary: Adversary
    examples: tuple[Kernel, ...]


@dataclass(frozen=True, slots=True)
class BasisCases:
    """How to attack a basis: the records for it, and a small one for each example of a kernel."""

    pool: Callable[[Basis, np.random.Generator], Pool]
    example: Callable[[Kernel], Basis]


Choose = Callable[[Sequence[int], Fraction, NoiseSource], int]
Law = Callable[[Sequence[int], float], list[float]]

RunNoise = Callable[[NoiseSource, float], NoiseAudit]
"""Runs an audit with noise from the source, times the given factor: 1 for the audit, less for a mutant."""


@dataclass(frozen=True, slots=True)
class NoiseCase:
    """One worst pair of a sampler. ``sampler`` is the name of the function in `hushsum.privacy.noise`."""

    sampler: str
    pair: str
    run: RunNoise
    thorough: bool = False


_KERNELS: dict[str, KernelCases] = {}
_BASES: dict[str, BasisCases] = {}
_NOISES: list[NoiseCase] = []


def register_kernel(name: str, adversary: Adversary, *examples: Kernel) -> None:
    """Make known how a hashable kernel is attacked."""
    _KERNELS[name] = KernelCases(adversary, examples)


def register_basis(name: str, cases: BasisCases) -> None:
    """Make known how a basis is attacked."""
    _BASES[name] = cases


def register_noise(case: NoiseCase) -> None:
    """Make a worst pair of a sampler known."""
    _NOISES.append(case)


def kernel_cases(name: str) -> KernelCases:
    """The cases of a kernel; refuses one that nothing is known about."""
    if name not in _KERNELS:
        raise UsageError(
            f"the kernel {name!r} has no audit: no table of counts releases it, or it was never registered; "
            f"audit one of {', '.join(sorted(_KERNELS))}"
        )
    return _KERNELS[name]


def basis_cases(name: str) -> BasisCases:
    """The cases of a basis; refuses one that nothing is known about."""
    if name not in _BASES:
        raise UsageError(
            f"the basis {name!r} has no audit; register its worst pairs in hushsum.auditing.registry"
        )
    return _BASES[name]


def audited_kernels() -> list[str]:
    """The registered kernels, sorted."""
    return sorted(_KERNELS)


def audited_bases() -> list[str]:
    """The registered bases, sorted."""
    return sorted(_BASES)


def noise_cases(*, thorough: bool = True) -> list[NoiseCase]:
    """The registered pairs of samplers, without the long ones unless ``thorough``."""
    return [case for case in _NOISES if thorough or not case.thorough]


def pool_for(basis: Basis, rng: np.random.Generator) -> Pool:
    """Adversarial records for a basis."""
    return basis_cases(basis.name).pool(basis, rng)


def _laplace(epsilon: float, shift: int, *, thorough: bool = False) -> NoiseCase:
    claimed = exact("epsilon", epsilon)

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        noise = laplace_noise(shift, claimed)
        drawn = IntegerNoise(LAPLACE, noise.parameter * exact("factor", factor))
        return audit_laplace(lambda size: drawn.draw(size, source), claimed, shift=shift)

    return NoiseCase("discrete_laplace", f"one cell moved by {shift}", run, thorough)


def _gaussian(
    variance: float, cells: int, *, count: float | None = None, shift: int = 1, thorough: bool = False
) -> NoiseCase:
    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        square = exact("factor", factor) ** 2
        table = IntegerNoise(GAUSSIAN, exact("variance", variance) * square)
        counts = None if count is None else IntegerNoise(GAUSSIAN, exact("variance", count) * square)
        return audit_gaussian(
            lambda size: table.draw(size, source),
            variance,
            cells=cells,
            shift=shift,
            count=None
            if counts is None or count is None
            else (lambda size: counts.draw(size, source), count),
        )

    pair = f"{cells} cells moved by {shift}" if cells > 1 else f"one cell moved by {shift}"
    return NoiseCase("discrete_gaussian", pair + (" and the count" if count else ""), run, thorough)


def _choice(choose: Choose, law: Law, epsilon: float, pair: tuple[list[int], list[int]]) -> NoiseCase:
    """Scores of sensitivity 1, so that the rate is ε/2."""

    def run(source: NoiseSource, factor: float) -> NoiseAudit:
        rate = exact("epsilon", epsilon) / 2 / exact("factor", factor)

        def side(scores: list[int]) -> Callable[[int], NDArray[np.int64]]:
            return lambda size: np.array([choose(scores, rate, source) for _ in range(size)], np.int64)

        def laws(at: float) -> tuple[list[float], list[float]]:
            return law(pair[0], at / 2), law(pair[1], at / 2)

        name = choose.__name__.replace("_", " ")
        seed = source.stream().more_bits(0)(0)
        return audit_choice(side(pair[0]), side(pair[1]), epsilon, laws, mechanism=name, seed=seed)

    return NoiseCase(choose.__name__, f"scores {pair[0]} and {pair[1]}", run)


def _register_all() -> None:
    register_kernel(
        "euclidean",
        dense_records,
        EuclideanKernel(dim=3, bandwidth=1.0),
        EuclideanKernel(dim=33, bandwidth=2.0, power=3),
        EuclideanKernel(dim=100, bandwidth=1.0, projection="structured"),
    )
    register_kernel(
        "manhattan", dense_records, ManhattanKernel(dim=3, bandwidth=2.0), ManhattanKernel(2, 4.0, power=2)
    )
    register_kernel(
        "angular",
        dense_records,
        AngularKernel(dim=4, bits=6),
        AngularKernel(dim=4, bits=4, power=10),
        AngularKernel(dim=100, bits=6, projection="structured"),
    )
    register_kernel("jaccard", set_records, JaccardKernel(), JaccardKernel(power=2))
    register_kernel("hamming", code_records, HammingKernel(dim=6), HammingKernel(dim=6, power=2))
    register_basis(HashRows.name, BasisCases(_hash_rows_pool, _hash_rows))
    cases: Sequence[NoiseCase] = (
        _laplace(1.0, 1),
        _laplace(1.0, 5),
        _laplace(0.1, 1),
        _laplace(3.0, 1),
        _laplace(0.01, 1, thorough=True),
        _laplace(1.0, 1000, thorough=True),
        _laplace(8.0, 1, thorough=True),
        _gaussian(1.0, 1),
        _gaussian(16.0, 16),
        _gaussian(16.0, 16, count=4.0),
        _gaussian(0.5, 4, shift=1, thorough=True),
        _gaussian(1e4, 100, count=500.0, thorough=True),
        _gaussian(9.0, 9, count=9.0, shift=3, thorough=True),
        _choice(permute_and_flip, permute_and_flip_law, 1.0, ([-2, 0], [-1, -1])),
        _choice(exponential_choice, exponential_law, 1.0, ([1, 0, 0, 0], [0, 1, 1, 1])),
    )
    for case in cases:
        register_noise(case)


def _hash_rows(kernel: Kernel) -> Basis:
    # 70 rows and 53 cells: full and partial panels of rows, and few enough cells that a stray count would
    # fall on a used one.
    return HashRows(kernel, rows=70, width=53, seed=11)


def _hash_rows_pool(basis: Basis, rng: np.random.Generator) -> Pool:
    return kernel_cases(basis.kernel.name).adversary(basis.kernel, rng)


_register_all()
