"""Density estimates by functional perturbation in a finite feature space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.fourier_features import FourierFeatures
from hushsum.errors import ClaimError, SecretRefused
from hushsum.methods.fourier_features import DEFAULT_FEATURES
from hushsum.models.density_plan import Box, Wanted
from hushsum.privacy.calibration import COUNT_SHARE, GAUSSIAN, IntegerNoise
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.functional import lattice_variance, perturb_lattice
from hushsum.privacy.relation import Relation
from hushsum.privacy.release_noise import release_noise
from hushsum.records.bounds import Bounds
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.version import PRODUCER


class FunctionalSums:
    """Σ φ(x) in whole numbers for every kernel wanted, and the number of records; secret.

    Privacy
    -------
    f = Σ k(x, ·) in the space of the features is φ-sum · φ(·): one record present or absent moves its
    coefficients by a vector no longer than √m·L (`FourierFeatures`), and those of k kernels together by √k
    times as much. A fiftieth of ε pays for a noisy count by exact discrete Laplace; what is left of ε, and
    δ, for exact discrete Gaussian noise on all coefficients, with `lattice_variance`. The two add up.
    """

    __slots__ = ("_bases", "_count", "_promise", "_tables")

    def __init__(self, wanted: Sequence[Wanted], promise: Promise, seed: int, box: Box) -> None:
        if promise.pure:
            raise ClaimError("method 'functional' needs a delta above 0, got none; give delta=1e-6")
        bounds = Bounds.of(box, len(box))
        self._promise = promise
        self._bases = {
            each.part: FourierFeatures(each.kernel, DEFAULT_FEATURES, seed, True, bounds) for each in wanted
        }
        self._tables: dict[str, NDArray[np.int64]] = {
            name: np.zeros(basis.shape, np.int64) for name, basis in self._bases.items()
        }
        self._count = 0

    def add(self, records: object) -> None:
        """Count records."""
        for name, basis in self._bases.items():
            batch = basis.prepare(records)
            basis.accumulate(self._tables[name], batch, step=1, threads=1)
        self._count += len(batch)

    def release(self, claim: Claim) -> dict[str, ReleasedFunction]:
        """One path for each kernel, drawn together under the claim."""
        promise = self._promise
        assert promise.epsilon is not None
        share = promise.epsilon * COUNT_SHARE
        with release_noise(None) as noise:
            noisy, count_noise = noise.laplace(np.array([self._count], np.int64), 1, share)
        rest = Promise(promise.epsilon - share, promise.delta, None)
        return {
            name: CoefficientFunction(
                basis=basis,
                table=perturb_lattice(self._tables[name], variance),
                claim=claim,
                noise=IntegerNoise(GAUSSIAN, variance),
                noisy_count=int(noisy[0]),
                count_noise=count_noise,
                producer=PRODUCER,
            )
            for name, basis, variance in self._calibrated(rest)
        }

    def _calibrated(self, promise: Promise) -> list[tuple[str, FourierFeatures, Fraction]]:
        number = len(self._bases)
        found = []
        for name, basis in self._bases.items():
            squared = number * basis.sensitivity(Relation.ADD_REMOVE).l2_squared
            cells = number * basis.shape[0] * basis.shape[1]
            found.append((name, basis, lattice_variance(math.isqrt(squared - 1) + 1, cells, promise)))
        return found

    def __repr__(self) -> str:
        return "<FunctionalSums CONFIDENTIAL>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused("private sums must not be pickled or copied; release the model and share that")
