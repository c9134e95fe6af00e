"""Which kind of function a noisy table is, by how it is read."""

from __future__ import annotations

from hushsum.bases.base import LinearReading, Reading, RowReading, Table
from hushsum.privacy.calibration import IntegerNoise
from hushsum.privacy.claim import Claim
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.table import TableFunction


def function_of(
    reading: Reading,
    table: Table,
    claim: Claim,
    noise: IntegerNoise,
    noisy_count: int,
    count_noise: IntegerNoise,
    producer: str,
    step: int = 1,
) -> NoisyTable:
    """The released function of a noisy table and its reading."""
    if isinstance(reading, RowReading):
        return TableFunction(reading, table, claim, noise, noisy_count, count_noise, producer, step)
    if isinstance(reading, LinearReading):
        return CoefficientFunction(reading, table, claim, noise, noisy_count, count_noise, producer, step)
    raise TypeError(f"the reading {type(reading).__name__} reads neither single cells nor the whole table")
