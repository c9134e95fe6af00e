"""Private density estimation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.methods.race import race
from hushsum.models.base import Floats, PrivateModel
from hushsum.privacy.claim import Promise
from hushsum.releases.bundle import Bundle


class PrivateDensity(PrivateModel):
    """Kernel density estimate that is released once."""

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        bandwidth: float = 0.5,
        bounds: Any = (-1, 1),
        random_state: Any = None,
        ledger: Any = None,
        dataset: str | None = None,
        key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bandwidth = bandwidth
        self.bounds = bounds
        self.random_state = random_state
        self.ledger = ledger
        self.dataset = dataset
        self.key = key

    def _start(self, seed: int) -> Any:
        kernel = EuclideanKernel(dim=self.n_features_in_, bandwidth=self.bandwidth)
        return race(kernel, seed=seed, bounds=self._box())

    def _count(self, secret: Any, X: Floats, y: NDArray[Any] | None) -> None:
        secret.add(X)

    def _draw(self, secret: Any, promise: Promise) -> Bundle:
        part = secret.release(epsilon=self.epsilon, delta=self.delta)
        return self._bundle(promise, parts={"density": part})

    def predict(self, X: object) -> Floats:
        """Mean kernel values."""
        queries = self._queries(X)
        values: Floats = self._reading().parts["density"](queries)
        return np.maximum(values, 0.0)
