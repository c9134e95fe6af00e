"""Neighbours for audits of the mechanisms that live here; ``hushsum.auditing.registry`` imports this."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.gaussian_smoke_test import Separated, allowed_distance, normal_chances
from hushsum.auditing.registry import MechanismCase, register_mechanism
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.models.density_functional import FunctionalSums
from hushsum.models.density_tables import FUNCTIONAL, KernelTable
from hushsum.privacy.claim import Claim, Promise, Relation
from hushsum.privacy.functional_perturbation import LATTICE_GAUSSIAN
from hushsum.privacy.release_noise import EXACT_INTEGERS
from hushsum.releases.coefficients import CoefficientFunction

PROMISE = Promise.of(epsilon=8.0, delta=1e-6)
_CLAIM = Claim(
    promise=PROMISE,
    unit="record",
    records_per_unit=1,
    relation=Relation.ADD_REMOVE,
    mechanism=LATTICE_GAUSSIAN,
    arithmetic=EXACT_INTEGERS,
    secure=True,
)
_SEED = 7


def _density(bandwidths: tuple[float, ...], promise: Promise) -> Separated:
    """One record, with a crowd elsewhere, in the coefficients of all kernels together."""
    planned = [
        KernelTable(GaussianKernel(dim=1, bandwidth=width), FUNCTIONAL, f"part{i}")
        for i, width in enumerate(bandwidths)
    ]
    sides = [FunctionalSums(planned, promise, _SEED, [(-20.0, 20.0)]) for _ in range(2)]
    for sums, records in zip(sides, ([[-3.0]] * 9, [[-3.0]] * 9 + [[4.0]]), strict=True):
        sums.add(np.array(records))

    claim = replace(_CLAIM, promise=promise)

    def release(side: int, seed: int | None) -> NDArray[np.float64]:
        return _joined([_table(each) for each in sides[side].release(claim).values()])

    exact = [_joined([table.reshape(-1) for table in sums._tables.values()]) for sums in sides]
    difference = (exact[1] - exact[0])[np.newaxis]
    # A fiftieth of ε pays for the count, and the bound of a feature's length holds for all phases.
    allowed = allowed_distance(promise)
    return Separated((exact[0], exact[1]), release, difference, allowed, normal_chances(0.95 * allowed))


def _table(function: object) -> NDArray[np.int64]:
    assert isinstance(function, CoefficientFunction)
    return np.asarray(function.table, np.int64).reshape(-1)


def _joined(tables: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    return np.concatenate(tables).astype(np.float64)


register_mechanism(
    MechanismCase("PrivateDensity, functional", "one record", partial(_density, (2.0,)), PROMISE)
)
register_mechanism(
    MechanismCase(
        "PrivateDensity, functional",
        "one record in two kernels",
        partial(_density, (0.5, 2.0)),
        PROMISE,
        thorough=True,
    )
)
