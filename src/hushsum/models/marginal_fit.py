"""From released marginals to a fitted mixture with the expected error of each marginal: post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from hushsum._types import Floats
from hushsum.bases.marginals import Marginals
from hushsum.errors import UsageError
from hushsum.methods.marginals import noise_of_cells
from hushsum.models.product_mixture import ProductMixture, fit_mixture
from hushsum.privacy.calibration import Sensitivity, UnitChange, calibrate
from hushsum.privacy.claim import Promise
from hushsum.releases.noisy_table import NoisyTable

BEFORE_FITTING: Final = (
    "noise alone, before fitting, which reduces it; expected_errors() has the error afterwards"
)


@dataclass(frozen=True, slots=True, eq=False)
class FittedMarginals:
    """Released marginals, the mixture fitted to them, and the expected total variation of each."""

    table: NoisyTable
    mixture: ProductMixture
    errors: Floats

    @property
    def basis(self) -> Marginals:
        """The marginals."""
        return cast(Marginals, self.table.basis)


def fit_marginals(table: NoisyTable, seed: int) -> FittedMarginals:
    """Fit a mixture to a released table of marginals.

    The expected errors are those of a table whose truth is known: the same noise is added to the marginals
    of the mixture, and another mixture is fitted to that.

    Raises
    ------
    UsageError
        if a column alone was not released.
    """
    basis = cast(Marginals, table.basis)
    if {(i,) for i in range(len(basis.sizes))} - {each.members for each in basis.sets}:
        raise UsageError(
            rule="the released marginals must contain every column alone",
            got="some only",
            remedy="count those too",
        )
    cells = [basis.marginal(table.table, i) / table.count for i in range(len(basis.sets))]
    mixture = _fit(basis, cells, seed)
    truth = [
        _cells_of(mixture, each.members, cell.shape) for each, cell in zip(basis.sets, cells, strict=True)
    ]
    random = np.random.default_rng([seed, 1])
    deviation = math.sqrt(table.cell_variance) / table.count
    again = _fit(basis, [each + deviation * random.standard_normal(each.shape) for each in truth], seed + 1)
    errors = [
        0.5 * np.abs(_cells_of(again, each.members, true.shape) - true).sum()
        for each, true in zip(basis.sets, truth, strict=True)
    ]
    return FittedMarginals(table, mixture, np.array(errors))


def error_before_fitting(
    sizes: Sequence[int], pairs: Sequence[Sequence[int]], number: int, promise: Promise, records: int
) -> float:
    """The mean total variation of the marginals of two columns by noise alone, for a declared size.

    ``number`` marginals are released together, of all columns and of some of the pairs.
    """
    cells = [sizes[i] * sizes[j] for i, j in pairs] or list(sizes)
    change = UnitChange(Sensitivity(l1=number, l2_squared=number, largest=1), count=1, records=1)
    noise = calibrate(promise, change, cells=max(sum(cells), number)).table
    variance = noise.variance
    return float(np.mean([noise_of_cells(each, math.sqrt(variance), records) for each in cells]))


def _fit(basis: Marginals, cells: Sequence[Floats], seed: int) -> ProductMixture:
    by_members = {each.members: values for each, values in zip(basis.sets, cells, strict=True)}
    single = [by_members[i,] for i in range(len(basis.sizes))]
    pairs = {(each[0], each[1]): values for each, values in by_members.items() if len(each) == 2}
    return fit_mixture(basis.sizes, single, pairs, seed=seed)


def _cells_of(mixture: ProductMixture, members: Sequence[int], shape: tuple[int, ...]) -> Floats:
    if len(members) <= 2:
        return mixture.marginal(members)
    found = np.einsum("ka->ka", mixture.column(members[0]))
    for i in members[1:]:
        found = np.einsum("ka,kb->kab", found, mixture.column(i)).reshape(len(found), -1)
    return np.asarray(found.mean(axis=0)).reshape(shape)
