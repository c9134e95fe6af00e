"""Which kind of function a noisy table is, by the basis that it sums."""

from __future__ import annotations

from hushsum.bases.base import Basis, LinearBasis, RowBasis, Table
from hushsum.privacy.calibration import IntegerNoise
from hushsum.privacy.claim import Claim
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.table import TableFunction


def function_of(
    basis: Basis,
    table: Table,
    claim: Claim,
    noise: IntegerNoise,
    noisy_count: int,
    count_noise: IntegerNoise,
    producer: str,
    step: int = 1,
) -> NoisyTable:
    """The released function of a basis and its noisy sums."""
    if isinstance(basis, RowBasis):
        return TableFunction(basis, table, claim, noise, noisy_count, count_noise, producer, step)
    if isinstance(basis, LinearBasis):
        return CoefficientFunction(basis, table, claim, noise, noisy_count, count_noise, producer, step)
    raise TypeError(f"the basis {basis.name!r} says neither how a cell nor how the whole table is read")
